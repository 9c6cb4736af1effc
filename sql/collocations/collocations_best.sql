-- The best collocations, of all or of one word: what `lexveil collocations --top` and `--word` print.
--
-- reads    bigrams (first_word, second_word, count, pmi_bits, from_base), trigrams (…, third_word, …), and as far as they are there
--          the other measures; one that is not there is null
-- params   $by: the column to order by; $min_count: n-grams counted less often are left out; $size: 2 or 3, null for
--          both; $word: a word that takes part, null for any; $n: rows at most
-- measures what stands in braces is filled in by lexveil.core.association: their columns, the same as nulls, and the
--          column that $by names
-- key      (first_word, second_word, third_word); third_word is null in a bigram
-- ordered  by $by, the highest first; ties by count, the highest first, then by words
with collocations as (
    select * from bigrams where coalesce($size, 2) = 2
    union all by name
    select * from trigrams where coalesce($size, 3) = 3
    union all by name
    select null::varchar as third_word, {absent} where false
)
select first_word, second_word, third_word, from_base, count, {columns}
from collocations
where count >= $min_count
    and ($word is null or first_word = $word or second_word = $word or third_word = $word)
order by
    case $by when 'count' then count::double {ordered_by} end desc,
    count desc, first_word, second_word, third_word nulls first
limit $n
