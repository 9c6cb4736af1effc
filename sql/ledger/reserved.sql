-- What a release reserves, over all its subjects.
--
-- reads    charges (subject, balance, paid, n_withheld, first_withheld)
-- key      one row
--
-- The total is split at 1e9, because a sum of nano-epsilon of many subjects need not fit into 64 bits.
select
    coalesce(sum(n_withheld), 0) as n_withheld,
    count(*) as n_subjects,
    count(first_withheld) as n_exhausted,
    count(*) filter (where paid > 0) as n_charged,
    coalesce(sum(paid / 1000000000), 0) as total_whole,
    coalesce(sum(paid % 1000000000), 0) as total_nano,
    coalesce(max(balance + paid), 0) as largest_balance
from temp.charges
