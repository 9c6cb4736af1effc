-- How often each pair of adjacent words occurs inside a sentence.
--
-- reads    sentence_ids (ids): word numbers of each sentence, in order; at most 2,097,152 different words
-- params   $first_id: n-grams with a word numbered below it are left out (punctuation and connector words stand there)
--          $min_count: rarer pairs are left out
-- key      (first_id, second_id)
-- ordered  by key, because row order is part of the file hash that DVC compares
with adjacent as (
    -- Unnesting the list beside itself shifted by one keeps both columns aligned, without a window.
    select unnest(ids[:-2]) as first_id, unnest(ids[2:]) as second_id
    from sentence_ids
    where len(ids) >= 2
),
counts as (
    -- One 64-bit key groups faster than two columns.
    select (first_id << 21) | second_id as key, count(*) as count
    from adjacent
    where first_id >= $first_id and second_id >= $first_id
    group by key
    having count(*) >= $min_count
)
select (key >> 21)::integer as first_id, (key & 2097151)::integer as second_id, count
from counts
order by key
