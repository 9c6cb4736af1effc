-- The documents that releases ask for, until their reservation; of this connection alone.
--
-- writes   temp.asked (release, document, subject, nano, key): number of the release, number of the document from 0,
--          hash of its subject, nano-epsilon; key is null in a ledger of hashed keys
create temp table if not exists asked (release integer, document integer, subject blob, nano integer, key text)
