-- Word pairs that belong together, with four measures of how much they do.
--
-- reads    bigrams (first_id, second_id, count, first_count, second_count): n-grams without punctuation and connector
--          words, with the counts of their words beside them
-- params   $n_tokens: N, all tokens of the corpus; $min_count; $min_pmi in bits; $min_npmi, $min_llr, $min_t_score:
--          further thresholds, null for none
-- key      (first_id, second_id)
-- source   docs/reference/collocations.md. With e = c(x) c(y) / N, what c(xy) would be if x and y were independent:
--          PMI = log2( c(xy) / e ), CLMLDP section 4.1; NPMI = PMI / -log2( c(xy) / N ), Bouma 2009;
--          LLR = 2 sum over the 2 x 2 table of o ln( o / e ), Dunning 1993; t = ( c(xy) - e ) / sqrt( c(xy) ), Church et al. 1991
-- ordered  by key, because row order is part of the file hash that DVC compares
with counted as (
    select
        first_id, second_id, count,
        count::double as xy,
        first_count::double as x,
        second_count::double as y,
        $n_tokens::double as n
    from bigrams
    where count >= $min_count
),
tables as (
    select
        *,
        log2(n * xy / (x * y)) as pmi_bits,
        -- Occurrences of x before another word, of y after another one, and of neither. A word that is over half of the
        -- text can make one negative, which counts as none.
        greatest(x - xy, 0) as x_only,
        greatest(y - xy, 0) as y_only,
        greatest(n - x - y + xy, 0) as neither
    from counted
),
scored as (
    select
        *,
        pmi_bits / -log2(xy / n) as npmi,
        2 * (
            xy * ln(xy * n / (x * y))
            + case when x_only > 0 and y < n then x_only * ln(x_only * n / (x * (n - y))) else 0 end
            + case when y_only > 0 and x < n then y_only * ln(y_only * n / ((n - x) * y)) else 0 end
            + case when neither > 0 then neither * ln(neither * n / ((n - x) * (n - y))) else 0 end
        ) as llr,
        (xy - x * y / n) / sqrt(xy) as t_score
    from tables
)
select first_id, second_id, count, pmi_bits, npmi, llr, t_score
from scored
where pmi_bits >= $min_pmi
    and ($min_npmi is null or npmi >= $min_npmi)
    and ($min_llr is null or llr >= $min_llr)
    and ($min_t_score is null or t_score >= $min_t_score)
order by first_id, second_id
