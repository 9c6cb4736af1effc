-- Make the balances of a release's subjects what they are with it. What is 0 then is deleted by the caller.
--
-- reads    sealed (subject, nano, mac, is_new): mac is null of who pays nothing
-- writes   balances (subject, nano, mac)
insert into balances
select subject, nano, mac
from sealed
where mac is not null and not is_new
on conflict (subject) do update set nano = excluded.nano, mac = excluded.mac
