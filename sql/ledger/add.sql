-- The first balances of a release's subjects, of those who had none.
--
-- reads    sealed (subject, nano, mac, is_new): mac is null of who pays nothing
-- writes   balances (subject, nano, mac)
insert into balances
select subject, nano, mac
from sealed
where mac is not null and is_new
