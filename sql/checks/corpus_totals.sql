-- Amount of text and number of tokens of each document, and their faults.
--
-- reads    sample (doc_id, text); tokens (doc_id, sentence_id, ids): one row per sentence; words (word_id, word)
-- key      doc_id, if the sample is sound; a repeated id gives repeated rows, and an unknown id a row without text
-- ordered  by doc_id, so that totals are added in one order
--
-- White space is defined as in Python's str.isspace, because training reads sentences by this definition.
with texts as (
    select
        doc_id,
        1 as is_sampled,
        (text is null)::integer as lacks_text,
        coalesce(
            regexp_matches(
                text,
                '[^\x09-\x0d\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]'
            ),
            false
        ) as is_readable
    from sample
),
faulty as (
    select coalesce(list(word_id), []) as ids
    from words
    where
        word is null or word = ''
        or regexp_matches(
            word, '[_\x09-\x0d\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]'
        )
),
vocabulary as (
    select
        count(*) as n_words,
        count(distinct word_id) = count(*) and min(word_id) = 0 and max(word_id) = count(*) - 1 as is_numbered
    from words
),
totals as (
    select
        doc_id,
        count(*) as n_sentences,
        sum(len(tokens.ids))::bigint as n_tokens,
        -- The numbers 0 to n - 1, each once, have this minimum, maximum and these sums; no accident repeats and skips
        -- numbers so that all four agree, and counting distinct numbers would take twice the memory and time.
        not coalesce(
            min(sentence_id) = 0
            and max(sentence_id) = count(*) - 1
            and sum(sentence_id) = count(*) * (count(*) - 1) // 2
            and sum(sentence_id::bigint * sentence_id) = count(*) * (count(*) - 1) * (2 * count(*) - 1) // 6,
            false
        ) as is_misnumbered,
        count(*) filter (coalesce(len(tokens.ids) = 0 or list_has_any(tokens.ids, faulty.ids), true)) as n_unsplittable,
        count(*) filter (
            coalesce(
                list_min(tokens.ids) < 0
                or list_max(tokens.ids) >= n_words
                or list_aggregate(tokens.ids, 'count') <> len(tokens.ids)
                or not is_numbered,
                false  -- a sentence without tokens has nothing to check
            )
        ) as n_unnumbered
    from tokens, faulty, vocabulary
    group by doc_id
)
select
    coalesce(texts.doc_id, totals.doc_id) as doc_id,
    coalesce(texts.is_readable, false)::integer as is_readable,
    coalesce(totals.n_sentences, 0) as n_sentences,
    coalesce(totals.n_tokens, 0) as n_tokens,
    case when texts.is_sampled is null then totals.n_sentences else 0 end as n_strays,
    coalesce(texts.lacks_text, 0) as lacks_text,
    (coalesce(texts.is_readable, false) and coalesce(totals.n_tokens, 0) = 0)::integer as lacks_tokens,
    coalesce(totals.is_misnumbered, false)::integer as is_misnumbered,
    coalesce(totals.n_unsplittable, 0) as n_unsplittable,
    coalesce(totals.n_unnumbered, 0) as n_unnumbered
from texts
full join totals on texts.doc_id = totals.doc_id
order by doc_id
