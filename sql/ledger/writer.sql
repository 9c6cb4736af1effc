-- Another release that writes the same file and has not ended, if there is one.
--
-- reads    files (release, partial), releases (number, id, state)
-- params   $partial: absolute path, as bytes; $release: number of the release to exclude
-- key      id
select releases.id, releases.state
from files
inner join releases on releases.number = files.release
where
    files.partial = $partial
    and files.release <> $release
    and releases.state in ('open', 'reserved', 'spent', 'written')
