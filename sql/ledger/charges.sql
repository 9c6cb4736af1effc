-- Cost of the documents of a release for each subject, and the first document that a cap withholds.
--
-- reads    asked (release, document, subject, nano), balances (subject, nano, mac)
-- params   $release: number; $most: largest nano-epsilon of a document; $limit: largest nano-epsilon of a subject
-- key      subject
--
-- A subject's documents are taken in order, as long as the subject's balance and the sum of their costs stay within the
-- limit. The first document that exceeds the limit is withheld, and so are all later documents of the subject, even
-- cheaper ones; first_withheld is null if none is withheld. Balances are looked up after asked is sorted by subject,
-- because balances are stored in that order. mac is null for a subject without a balance.
with costs as (
    select subject, document, case when nano < $most then nano else $most end as nano
    from asked
    where release = $release
),
running as (
    select
        subject,
        document,
        nano,
        sum(nano) over (partition by subject order by document) as asked_so_far
    from costs
),
beside as (
    select
        running.subject,
        running.document,
        running.nano,
        balances.mac,
        coalesce(balances.nano, 0) as balance,
        coalesce(balances.nano, 0) + running.asked_so_far as spent
    from running
    left join balances on balances.subject = running.subject
)
select
    subject,
    balance,
    mac,
    cast(coalesce(sum(nano) filter (where spent <= $limit), 0) as bigint) as paid,
    count(*) filter (where spent > $limit) as n_withheld,
    min(document) filter (where spent > $limit) as first_withheld
from beside
group by subject, balance, mac
order by subject
