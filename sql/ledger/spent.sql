-- Sum of the charges of each subject of a release; its balance must equal this sum.
--
-- reads    charges (subject), spends (subject, nano)
-- key      one row for each subject of charges
select coalesce(sum(spends.nano), 0)
from spends
where spends.subject = charges.subject
