-- Take what subjects were to pay for a release off what they have spent. What comes to 0 is deleted by the caller.
--
-- reads    spends (release, subject, nano)
-- writes   balances (subject, nano, mac)
-- params   $release: number of the release
-- uses     mac(subject, nano): the keyed hash of a balance
update balances
set
    nano = nano - (select spends.nano from spends where spends.release = $release and spends.subject = balances.subject),
    mac = mac(
        subject,
        nano - (select spends.nano from spends where spends.release = $release and spends.subject = balances.subject)
    )
where subject in (select spends.subject from spends where spends.release = $release)
