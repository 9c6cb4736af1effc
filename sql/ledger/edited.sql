-- How many of the subjects of a release have a balance that is not the sum of their charges.
--
-- reads    charges (subject, balance), spends (subject, nano)
-- key      one row
select count(*) as n_edited
from charges
where balance <> coalesce((select sum(spends.nano) from spends where spends.subject = charges.subject), 0)
