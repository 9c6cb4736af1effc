-- The best collocations, or the best collocations of one word, which `lexveil collocations --top` and `--word` print.
--
-- reads    bigrams (first_word, second_word, count, pmi_bits, from_base), trigrams (…, third_word, …), with the other
--          measures that the project has; a missing measure is null
-- params   $by: the column to order by; $min_count: n-grams counted less often are left out; $size: 2 or 3, null for
--          both; $word: a word of the collocation, null for any; $n: largest number of rows
-- measures lexveil.core.association fills in the text in braces: the columns of the measures, these columns as nulls,
--          and the column that $by names
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
