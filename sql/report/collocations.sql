-- The collocations that the report shows: the most frequent, and those with the highest PMI among frequent ones.
--
-- reads    bigrams (first_word, second_word, count, pmi_bits), trigrams (…, third_word, …)
-- params   $quantile: only collocations counted at least as often as this quantile of all counts are in the list
--          by PMI, because PMI is highest for the rarest collocations; $n: length of each list
-- key      (ngrams, words); by_pmi and by_count are places from 1, null if not in that list; threshold is the count
--          at the quantile
-- ordered  by key; ties in a list are decided by the other number, then by the words
with collocations as (
    select 'bigrams' as ngrams, concat_ws(' ', first_word, second_word) as words, count, pmi_bits from bigrams
    union all
    select 'trigrams', concat_ws(' ', first_word, second_word, third_word), count, pmi_bits from trigrams
),
thresholds as (
    select ngrams, quantile_disc(count, $quantile) as threshold from collocations group by ngrams
),
places as (
    select
        *,
        row_number() over (partition by ngrams order by count desc, pmi_bits desc, words) as by_count,
        case when count >= threshold then row_number() over (
            partition by ngrams, count >= threshold order by pmi_bits desc, count desc, words
        ) end as by_pmi
    from collocations join thresholds using (ngrams)
)
select
    ngrams,
    words,
    count,
    pmi_bits,
    threshold,
    case when by_pmi <= $n then by_pmi end as by_pmi,
    case when by_count <= $n then by_count end as by_count
from places
where by_pmi <= $n or by_count <= $n
order by ngrams, words
