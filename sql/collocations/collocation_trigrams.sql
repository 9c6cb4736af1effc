-- Word triples that are collocations, with their association measures.
--
-- reads    trigrams (first_id, second_id, third_id, count, first_count, second_count, third_count), as in
--          collocation_bigrams.sql
-- params   as in collocation_bigrams.sql
-- measures as in collocation_bigrams.sql
-- key      (first_id, second_id, third_id)
-- source   docs/reference/collocations.md, and the measures
-- ordered  by key, because row order is part of the file hash that DVC compares
with counted as (
    select
        first_id, second_id, third_id, count,
        count::double as xyz,
        first_count::double as x,
        second_count::double as y,
        third_count::double as z,
        $n_tokens::double as n
    from trigrams
    where count >= $min_count
),
scored as (
    select *, x * y / n * z / n as expected, {trigram_measures}
    from counted
)
select first_id, second_id, third_id, count, {columns}
from scored
where {thresholds}
order by first_id, second_id, third_id
