-- The documents that a release withholds.
--
-- reads    asked (release, document, subject), charges (subject, first_withheld)
-- params   $release: number
-- key      document
--
-- A cross join, so that SQLite goes through asked once and makes an index of who has something withheld.
with exhausted as (
    select subject, first_withheld from charges where first_withheld is not null
)
select asked.document
from asked
cross join exhausted
where asked.release = $release and exhausted.subject = asked.subject and asked.document >= exhausted.first_withheld
