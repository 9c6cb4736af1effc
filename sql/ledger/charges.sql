-- What the documents of a release cost their subjects, and from which document on a cap withholds them.
--
-- reads    asked (release, document, subject, nano), balances (subject, nano, mac)
-- params   $release: number; $most: nano-epsilon of a document at most; $limit: nano-epsilon of a subject at most
-- key      subject
--
-- A subject's documents are taken in order as long as all of them so far, withheld ones too, fit beside what it has
-- spent (balance); what comes after the first that does not fit is withheld, if it is cheaper too. So what is withheld
-- is an end of each subject's documents: first_withheld is null if there is none. Balances are looked up after asked is
-- in the order of subjects, which is theirs on the disk. mac is null of who has no balance.
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
