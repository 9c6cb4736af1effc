-- How often each pair of adjacent words occurs in the corpus.
--
-- reads    counted (key, count): the results of bigram_counts.sql, one after another
-- params   $first_key, $last_key: range of keys whose counts are added, both ends included
--          $min_count: rarer pairs are left out
-- key      (first_id, second_id)
-- ordered  by key, because row order is part of the file hash that DVC compares
with counts as (
    select key, sum(count)::bigint as count
    from counted
    where key between $first_key and $last_key
    group by key
    having sum(count) >= $min_count
)
select (key >> 21)::integer as first_id, (key & 2097151)::integer as second_id, count
from counts
order by key
