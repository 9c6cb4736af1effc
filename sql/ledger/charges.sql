-- What the documents of a release cost their subjects, and from which document on a cap withholds them.
--
-- reads    asked (release, document, subject, nano), balances (subject, nano)
-- params   $release: number; $most: nano-epsilon of a document at most; $limit: nano-epsilon of a subject at most
-- key      subject
--
-- A subject's documents are taken in order as long as all of them so far, withheld ones too, fit beside what it has
-- spent (balance); what comes after the first that does not fit is withheld, if it is cheaper too. So what is withheld
-- is an end of each subject's documents: first_withheld is null if there is none.
with running as (
    select
        asked.subject,
        asked.document,
        min(asked.nano, $most) as nano,
        coalesce(balances.nano, 0) as balance,
        coalesce(balances.nano, 0) + sum(min(asked.nano, $most)) over (
            partition by asked.subject
            order by asked.document
        ) as spent
    from temp.asked
    left join balances on balances.subject = asked.subject
    where asked.release = $release
)
select
    subject,
    balance,
    coalesce(sum(nano) filter (where spent <= $limit), 0) as paid,
    count(*) filter (where spent > $limit) as n_withheld,
    min(document) filter (where spent > $limit) as first_withheld
from running
group by subject
order by subject
