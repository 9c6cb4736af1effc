-- The documents that a release withholds.
--
-- reads    asked (release, document, subject), charges (subject, first_withheld)
-- params   $release: number
-- key      document
select asked.document
from temp.charges
inner join temp.asked on asked.subject = charges.subject and asked.document >= charges.first_withheld
where asked.release = $release
