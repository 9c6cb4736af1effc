-- How often each pair of adjacent words occurs inside a sentence of one shard.
--
-- reads    shard (ids): word numbers of each sentence, in order
-- params   $first_id, $end_id: a pair counts if both numbers lie in [first_id, end_id); end_id <= 2,097,152
-- key      key: first_id << 21 | second_id
-- ordered  by key, which makes the file half as large
with adjacent as (
    -- Unnesting the list next to the list shifted by one keeps both columns aligned, without a window function.
    select unnest(ids[:-2]) as first_id, unnest(ids[2:]) as second_id
    from shard
    where len(ids) >= 2
)
-- One 64-bit key groups faster than two columns.
select (first_id::bigint << 21) | second_id as key, count(*)::integer as count
from adjacent
where first_id >= $first_id and first_id < $end_id
    and second_id >= $first_id and second_id < $end_id
group by key
order by key
