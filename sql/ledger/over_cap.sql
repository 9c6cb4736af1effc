-- Subjects whose spending a release raised above the cap that was in force at its reservation.
--
-- reads    spends (release, subject, nano), releases (number, cap, reserved_seq)
-- key      (subject, nano)
-- ordered  by key
--
-- Charges that were aborted later are missing in the sum, which can only make it smaller, so no row is a false alarm.
with running as (
    select
        releases.cap,
        spends.subject,
        cast(
            sum(spends.nano) over (partition by spends.subject order by releases.reserved_seq) as bigint
        ) as nano
    from spends
    inner join releases on releases.number = spends.release
)
select subject, nano, cap
from running
where nano > cap
order by subject, nano
