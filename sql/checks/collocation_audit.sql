-- Number of faults of the collocations, per length.
--
-- reads    bigrams (first_word, second_word, count, pmi_bits), trigrams (with third_word): the collocations to check
--          words (word_id, word, count, kind); bigram_counts (first_id, second_id, count), trigram_counts (with third_id)
--          base_bigrams, base_trigrams: collocations that the base model adds; base: all collocations of the base
--          model; all three have the columns of trigrams, with third_word null in a bigram
-- params   $n_needed: smallest number of bigrams; $n_tokens: N, all tokens of the corpus; $min_count; $min_pmi in bits
-- key      ngrams: 'bigrams' or 'trigrams'; the result always has both rows
-- source   CLMLDP section 4.1: PMI = log2( N^(n-1) c(x1..xn) / (c(x1) .. c(xn)) ), in bits
-- ordered  by length, which is the order of the messages
--
-- A bigram is handled as a trigram with a third word that is every token: its c = N cancels one N; its id is -1.
-- PMI is recomputed as a sum of logarithms, not by the expression that it has to confirm.
with kept as (
    select 2 as length, first_word, second_word, null as third_word, count, pmi_bits from bigrams
    union all
    select 3, first_word, second_word, third_word, count, pmi_bits from trigrams
),
counted as (
    select first_id, second_id, -1 as third_id, count from bigram_counts
    union all
    select first_id, second_id, third_id, count from trigram_counts
),
third_words as (
    select word_id, word, count, kind from words
    union all
    select -1, null, $n_tokens::bigint, 'word'
),
joined as (
    select
        kept.length, kept.count, kept.pmi_bits,
        x.word_id is null or y.word_id is null or z.word_id is null as is_unknown,
        coalesce(x.kind <> 'word' or y.kind <> 'word' or z.kind <> 'word', false) as is_barred,
        coalesce(kept.count > least(x.count, y.count, z.count), true) as is_overcounted,
        kept.count is distinct from counted.count as is_miscounted,
        -- A missing or infinite number gives an infinite difference, so that the check fails.
        coalesce(
            abs(
                kept.pmi_bits
                - (
                    log2(kept.count) + 2 * log2($n_tokens::double)
                    - log2(x.count) - log2(y.count) - log2(z.count)
                )
            ),
            'infinity'::double
        ) as pmi_difference_bits
    from kept
    left join words as x on x.word = kept.first_word
    left join words as y on y.word = kept.second_word
    left join third_words as z on z.word is not distinct from kept.third_word
    left join counted
        on counted.first_id = x.word_id and counted.second_id = y.word_id and counted.third_id = z.word_id
),
repeated as (
    select length, sum(copies)::bigint as n_repeated
    from (
        select length, count(*) as copies
        from kept
        group by length, first_word, second_word, third_word
        having count(*) > 1
    )
    group by length
),
-- The base model adds exactly the collocations that it has and the corpus lacks, unchanged.
expected as (
    select base.* from base
    anti join kept
        on base.first_word = kept.first_word and base.second_word = kept.second_word
        and base.third_word is not distinct from kept.third_word
),
added as (
    select * from base_bigrams
    union all
    select * from base_trigrams
),
strays as (
    (from added except all from expected)
    union all
    (from expected except all from added)
),
of_base as (
    select third_word is null as is_bigram, count(*) as n_of_base from added group by all
),
stray_rows as (
    select third_word is null as is_bigram, count(*) as n_strays from strays group by all
),
totals as (
    select
        length,
        count(*) as n_rows,
        count(*) filter (not coalesce(count >= $min_count, false)) as n_below_count,
        count(*) filter (not coalesce(pmi_bits >= $min_pmi, false)) as n_below_pmi,
        count(*) filter (is_unknown) as n_unknown,
        count(*) filter (is_barred) as n_barred,
        count(*) filter (is_overcounted) as n_overcounted,
        count(*) filter (is_miscounted) as n_miscounted,
        max(case when isnan(pmi_difference_bits) then 'infinity'::double else pmi_difference_bits end)
            as pmi_difference_bits,
        min(pmi_bits) as min_pmi_bits
    from joined
    group by length
)
select
    lengths.ngrams,
    coalesce(n_rows, 0) as n_rows,
    greatest(lengths.n_needed - coalesce(n_rows, 0), 0) as n_wanting,
    coalesce(n_below_count, 0) as n_below_count,
    coalesce(n_below_pmi, 0) as n_below_pmi,
    coalesce(n_unknown, 0) as n_unknown,
    coalesce(n_barred, 0) as n_barred,
    coalesce(n_repeated, 0) as n_repeated,
    coalesce(n_overcounted, 0) as n_overcounted,
    coalesce(n_miscounted, 0) as n_miscounted,
    coalesce(pmi_difference_bits, 0) as pmi_difference_bits,
    coalesce(min_pmi_bits, 'infinity'::double) as min_pmi_bits,
    coalesce(n_of_base, 0) as n_of_base,
    coalesce(n_strays, 0) as n_strays
from (values (2, 'bigrams', $n_needed), (3, 'trigrams', 0)) as lengths (length, ngrams, n_needed)
left join totals using (length)
left join repeated using (length)
left join of_base on of_base.is_bigram = (length = 2)
left join stray_rows on stray_rows.is_bigram = (length = 2)
order by length
