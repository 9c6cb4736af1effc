-- The collocations among some given n-grams, which `lexveil collocations TEXT` looks up.
--
-- reads    bigrams, trigrams as in collocations_best.sql; given_bigrams (first_word, second_word) and
--          given_trigrams (first_word, second_word, third_word)
-- measures lexveil.core.association fills in the text in braces: columns of the measures, and these columns as nulls
-- key      (first_word, second_word, third_word); third_word is null in a bigram
-- ordered  by key
with collocations as (
    select * from bigrams semi join given_bigrams using (first_word, second_word)
    union all by name
    select * from trigrams semi join given_trigrams using (first_word, second_word, third_word)
    union all by name
    select null::varchar as third_word, {absent} where false
)
select first_word, second_word, third_word, from_base, count, {columns}
from collocations
order by first_word, second_word, third_word nulls first
