-- Histogram of the PMI of collocations.
--
-- reads    bigrams (pmi_bits), trigrams (pmi_bits)
-- params   $bin_bits: width of a bin
-- key      (ngrams, pmi_bits): pmi_bits is the lower edge of the bin
-- ordered  by key, because row order is part of the file hash that DVC compares
with collocations as (
    select 'bigrams' as ngrams, pmi_bits from bigrams
    union all
    select 'trigrams' as ngrams, pmi_bits from trigrams
)
select ngrams, floor(pmi_bits / $bin_bits) * $bin_bits as pmi_bits, count(*) as n_collocations
from collocations
group by all
order by ngrams, pmi_bits
