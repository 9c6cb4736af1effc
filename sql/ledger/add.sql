-- Insert the first balances of those subjects of a release who had none.
--
-- reads    sealed (subject, nano, mac, is_new): mac is null for a subject who pays nothing
-- writes   balances (subject, nano, mac)
insert into balances
select subject, nano, mac
from sealed
where mac is not null and is_new
