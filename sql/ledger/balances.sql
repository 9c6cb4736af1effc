-- How what subjects have spent is distributed.
--
-- reads    balances (subject, nano)
-- params   $cap: nano-epsilon, null if there is no cap
-- key      one row; all null but n_subjects and n_exhausted if there are no subjects
--
-- A quantile is the smallest balance that this share of subjects does not exceed. Totals are split at 1e9, because a
-- sum of nano-epsilon of many subjects need not fit into 64 bits.
with ranked as (
    select nano, row_number() over (order by nano) as place, count(*) over () as n
    from balances
)
select
    count(*) as n_subjects,
    count(*) filter (where nano >= $cap) as n_exhausted,
    cast(sum(nano / 1000000000) as bigint) as total_whole,
    cast(sum(nano % 1000000000) as bigint) as total_nano,
    min(nano) as smallest,
    min(nano) filter (where place >= 0.5 * n) as median,
    min(nano) filter (where place >= 0.9 * n) as quantile_90,
    min(nano) filter (where place >= 0.99 * n) as quantile_99,
    max(nano) as largest
from ranked
