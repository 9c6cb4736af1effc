-- Cost of all documents of each subject together, and the subjects that a cap withholds.
--
-- reads    asked (release, document, subject, nano), balances (subject, nano, mac)
-- params   $release: number; $limit: largest nano-epsilon of a subject
-- key      subject
--
-- The columns are the same as in charges.sql. A subject without enough budget pays nothing, and all its documents are
-- withheld. The result has no order, because SQLite would sort a second time; for PostgreSQL an order is added.
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
