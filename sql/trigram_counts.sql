-- How often each run of three adjacent words occurs inside a sentence.
--
-- reads    sentence_ids (ids): word numbers of each sentence, in order; at most 2,097,152 different words
-- params   $first_id: n-grams with a word numbered below it are left out (punctuation and connector words stand there)
--          $min_count: rarer trigrams are left out
-- key      (first_id, second_id, third_id)
-- ordered  by key, because row order is part of the file hash that DVC compares
with adjacent as (
    select unnest(ids[:-3]) as first_id, unnest(ids[2:-2]) as second_id, unnest(ids[3:]) as third_id
    from sentence_ids
    where len(ids) >= 3
),
counts as (
    select (first_id << 42) | (second_id << 21) | third_id as key, count(*) as count
    from adjacent
    where first_id >= $first_id and second_id >= $first_id and third_id >= $first_id
    group by key
    having count(*) >= $min_count
)
select (key >> 42)::integer as first_id, ((key >> 21) & 2097151)::integer as second_id,
    (key & 2097151)::integer as third_id, count
from counts
order by key
