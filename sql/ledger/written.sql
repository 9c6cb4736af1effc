-- The entry that lists the files that a release has written, in the order in which they are published.
--
-- reads    entries (release, kind, payload), releases (number, id)
-- params   $release: number
-- key      payload
select entries.payload
from entries
inner join releases on releases.id = entries.release
where
    releases.number = $release
    and entries.kind = 'written'
