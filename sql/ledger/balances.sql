-- Distribution of the spending of subjects.
--
-- reads    balances (subject, nano)
-- params   $cap: nano-epsilon, null if there is no cap
-- key      one row; without subjects, all columns except n_subjects and n_exhausted are null
--
-- A quantile is the smallest balance that this share of subjects does not exceed. Totals are split at 1e9, because a
-- sum of nano-epsilon over many subjects may exceed 64 bits.
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
