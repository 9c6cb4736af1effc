-- How often each run of three adjacent words occurs inside a sentence of one shard.
--
-- reads    shard (ids): word numbers of each sentence, in order
-- params   $first_id, $end_id: a trigram counts if all numbers lie in [first_id, end_id); end_id <= 2,097,152
-- key      key: first_id << 42 | second_id << 21 | third_id
-- ordered  by key, which makes the file half as large
with adjacent as (
    select unnest(ids[:-3]) as first_id, unnest(ids[2:-2]) as second_id, unnest(ids[3:]) as third_id
    from shard
    where len(ids) >= 3
)
select (first_id::bigint << 42) | (second_id::bigint << 21) | third_id as key, count(*)::integer as count
from adjacent
where first_id >= $first_id and first_id < $end_id
    and second_id >= $first_id and second_id < $end_id
    and third_id >= $first_id and third_id < $end_id
group by key
order by key
