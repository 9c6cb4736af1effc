-- The release that writes a file and has not ended, if there is one beside the release that asks.
--
-- reads    files (release, partial), releases (number, id, state)
-- params   $partial: absolute path, as bytes; $release: number of who asks
-- key      id
select releases.id, releases.state
from files
inner join releases on releases.number = files.release
where
    files.partial = $partial
    and files.release <> $release
    and releases.state in ('open', 'reserved', 'spent', 'written')
