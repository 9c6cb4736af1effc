-- Every version of every document that was released, and whether the version is visible.
--
-- reads    ids (release, row, document, content, version, published): row from 1, in the release's private input
--          gone (document)
-- key      (release, row)
-- ordered  by key; names of releases begin with their time
--
-- published is the published id. place is the row's number in the release's file, from 0; null if the row was removed
-- from the file.
with versions as (
    select ids.*, gone.document is not null as is_gone
    from ids
    left join gone using (document)
)
select
    release,
    row,
    document,
    version,
    published,
    case
        when is_gone then 'withdrawn'
        when version < max(version) over (partition by document) then 'superseded'
        else 'current'
    end as state,
    case
        when not is_gone then count(*) filter (not is_gone) over (partition by release order by row) - 1
    end as place
from versions
order by release, row
