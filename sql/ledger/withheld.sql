-- The documents that a release withholds.
--
-- reads    asked (release, document, subject), charges (subject, first_withheld)
-- params   $release: number
-- key      document
--
-- A cross join, so that SQLite reads asked once and builds an index of the subjects with withheld documents.
with exhausted as (
    select subject, first_withheld from charges where first_withheld is not null
)
select asked.document
from asked
cross join exhausted
where asked.release = $release and exhausted.subject = asked.subject and asked.document >= exhausted.first_withheld
