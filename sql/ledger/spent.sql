-- What a subject of a release has spent by its charges, which its balance must be.
--
-- reads    charges (subject), spends (subject, nano)
-- key      one row for each subject of charges
select coalesce(sum(spends.nano), 0)
from spends
where spends.subject = charges.subject
