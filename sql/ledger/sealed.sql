-- Balances that a release changes, as they are with it; of this connection alone.
--
-- writes   sealed (subject, nano, mac)
create temp table if not exists sealed (subject blob, nano bigint, mac blob)
