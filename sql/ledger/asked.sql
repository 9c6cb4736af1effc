-- Temporary table of this connection: the documents for which releases request a reservation.
--
-- writes   asked (release, document, subject, nano, key): number of the release, number of the document from 0,
--          hash of its subject, requested nano-epsilon; key is null in a ledger of hashed keys
create temp table if not exists asked (release integer, document bigint, subject blob, nano bigint, key text)
