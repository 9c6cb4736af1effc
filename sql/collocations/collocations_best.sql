-- The best collocations, of all or of one word: what `lexveil collocations --top` and `--word` print.
--
-- reads    bigrams (first_word, second_word, count, pmi_bits), trigrams (…, third_word, …), and as far as they are there
--          npmi, llr, t_score; a measure that is not there is null
-- params   $by: the column to order by; $min_count: n-grams counted less often are left out; $size: 2 or 3, null for
--          both; $word: a word that takes part, null for any; $n: rows at most
-- key      (first_word, second_word, third_word); third_word is null in a bigram
-- ordered  by $by, the highest first; ties by count, the highest first, then by words
with collocations as (
    select * from bigrams where coalesce($size, 2) = 2
    union all by name
    select * from trigrams where coalesce($size, 3) = 3
    union all by name
    select null::varchar as third_word, null::double as npmi, null::double as llr, null::double as t_score where false
)
select first_word, second_word, third_word, count, pmi_bits, npmi, llr, t_score
from collocations
where count >= $min_count
    and ($word is null or first_word = $word or second_word = $word or third_word = $word)
order by
    case $by
        when 'count' then count::double
        when 'pmi_bits' then pmi_bits
        when 'npmi' then npmi
        when 'llr' then llr
        when 't_score' then t_score
    end desc,
    count desc, first_word, second_word, third_word nulls first
limit $n
