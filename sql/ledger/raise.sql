-- Update the balances of a release's subjects to include the release. The caller deletes balances of 0.
--
-- reads    sealed (subject, nano, mac, is_new): mac is null for a subject who pays nothing
-- writes   balances (subject, nano, mac)
insert into balances
select subject, nano, mac
from sealed
where mac is not null and not is_new
on conflict (subject) do update set nano = excluded.nano, mac = excluded.mac
