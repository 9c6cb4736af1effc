-- Spending of the subjects who pay for some releases: their balance, and the sum of their charges for all releases.
--
-- reads    spends (release, subject, nano), releases (number, cap, reserved_seq), balances (subject, nano, mac)
-- params   {touched}: a query that returns the numbers of these releases
-- key      subject
--
-- mac is null for a subject without a balance. most is the spending to which a release raised the subject above the cap
-- at its reservation; null if no release did. Charges that were aborted later are missing in this sum, which can only
-- make it smaller, so no row is a false alarm.
with paying as (
    select distinct subject from spends where release in ({touched})
),
running as (
    select
        paying.subject,
        spends.nano,
        releases.cap,
        sum(spends.nano) over (partition by paying.subject order by releases.reserved_seq) as spent
    from paying
    inner join spends on spends.subject = paying.subject
    inner join releases on releases.number = spends.release
),
sums as (
    select
        subject,
        cast(sum(nano) as bigint) as paid,
        cast(max(spent) filter (where spent > cap) as bigint) as most,
        min(cap) filter (where spent > cap) as cap
    from running
    group by subject
)
select sums.subject, coalesce(balances.nano, 0) as nano, balances.mac, sums.paid, sums.most, sums.cap
from sums
left join balances on balances.subject = sums.subject
order by sums.subject
