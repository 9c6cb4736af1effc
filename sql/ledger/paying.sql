-- What those have spent who pay for some releases: by their balance, and by what they paid for all releases.
--
-- reads    spends (release, subject, nano), releases (number, cap, reserved_seq), balances (subject, nano, mac)
-- params   {touched}: a query of numbers of releases
-- key      subject
--
-- mac is null of who has no balance. most is what a release brought a subject to above the cap of then, null if none
-- did; what was aborted since is gone from that sum, which can only be smaller for it: no row is a false alarm.
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
