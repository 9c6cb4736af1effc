-- Word pairs that are collocations, with their association measures.
--
-- reads    bigrams (first_id, second_id, count, first_count, second_count): n-grams without punctuation and connector
--          words, with the counts of their words
-- params   $n_tokens: N, all tokens of the corpus; $min_count; $min_NAME of every measure, null for no threshold
-- measures lexveil.core.association fills in the text in braces: a column of each measure, and the thresholds
-- key      (first_id, second_id)
-- source   docs/reference/collocations.md, and the measures
-- ordered  by key, because row order is part of the file hash that DVC compares
with counted as (
    select
        first_id, second_id, count,
        count::double as xy,
        first_count::double as x,
        second_count::double as y,
        $n_tokens::double as n
    from bigrams
    where count >= $min_count
),
tables as (
    select
        *,
        x * y / n as expected,
        -- Numbers of pairs with x before another word, with y after another word, and with neither. A word that is over
        -- half of the text can make a number negative, which is replaced by 0.
        greatest(x - xy, 0) as x_only,
        greatest(y - xy, 0) as y_only,
        greatest(n - x - y + xy, 0) as neither
    from counted
),
scored as (
    select *, {bigram_measures}
    from tables
)
select first_id, second_id, count, {columns}
from scored
where {thresholds}
order by first_id, second_id
