-- Spending of each subject, and the number of releases for which it was charged.
--
-- reads    balances (subject, nano), spends (subject), names (subject, key)
-- key      subject
-- ordered  by key
--
-- key is null in a ledger of hashed keys.
with paid as (
    select subject, count(*) as n_releases from spends group by subject
)
select balances.subject, balances.nano, paid.n_releases, names.key
from balances
left join paid on paid.subject = balances.subject
left join names on names.subject = balances.subject
order by balances.subject
