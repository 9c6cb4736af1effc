-- What subjects are to pay for all of their documents together, and whom a cap withholds.
--
-- reads    asked (release, document, subject, nano), balances (subject, nano, mac)
-- params   $release: number; $limit: nano-epsilon of a subject at most
-- key      subject
--
-- The columns are those of charges.sql: who does not have enough left pays nothing, and all is withheld. In no order:
-- SQLite would sort a second time; PostgreSQL is given one.
with together as (
    select subject, sum(nano) as nano, count(*) as n_rows, min(document) as first_row
    from asked
    where release = $release
    group by subject
),
beside as (
    select
        together.*,
        balances.mac,
        coalesce(balances.nano, 0) as balance,
        coalesce(balances.nano, 0) + together.nano <= $limit as fits
    from together
    left join balances on balances.subject = together.subject
)
select
    subject,
    balance,
    mac,
    cast(case when fits then nano else 0 end as bigint) as paid,
    case when fits then 0 else n_rows end as n_withheld,
    case when not fits then first_row end as first_withheld
from beside
