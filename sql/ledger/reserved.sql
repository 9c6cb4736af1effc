-- Totals of the reservation of a release, over all its subjects.
--
-- reads    charges (subject, balance, mac, paid, n_withheld, first_withheld)
-- key      one row
--
-- The total is split at 1e9, because a sum of nano-epsilon over many subjects may exceed 64 bits.
select
    cast(coalesce(sum(n_withheld), 0) as bigint) as n_withheld,
    count(*) as n_subjects,
    count(first_withheld) as n_exhausted,
    count(*) filter (where paid > 0) as n_charged,
    count(*) filter (where paid > 0 and mac is null) as n_new,
    cast(coalesce(sum(paid / 1000000000), 0) as bigint) as total_whole,
    cast(coalesce(sum(paid % 1000000000), 0) as bigint) as total_nano,
    coalesce(max(balance + paid), 0) as largest_balance
from charges
