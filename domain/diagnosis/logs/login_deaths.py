"""What a process says of a login that fails, its own or that of whom it asks: Kerberos, JAAS, tokens.

From JaasContext, JaasConfig and OAuthBearerLoginModule of Kafka 3.9; what is of Kerberos are Java's words. Of one line the
first kind counts.
"""

import re
from dataclasses import replace

from domain.diagnosis.logs.lines import Found, Told

LOGINS = (
    Told(
        "kerberos-principal",
        re.compile(
            r"(?:Client|Server) not found in Kerberos database(?: \(\d+\)(?: - \w{1,40})?)?|"
            r"Fail to create credential\. \(63\) - No service creds"
        ),
        "principals at the KDC for this node, and for each host that it asks",
        "Server, or no service creds: the KDC has no principal for the service at that host, as of one that is new for "
        "controllers. Make it, with a keytab there that has it (kadmin: addprinc -randkey kafka/HOST, of ZooKeeper "
        "zookeeper/HOST). Where there is one, another name or realm was made of that host: by DNS backwards, /etc/hosts, or "
        "[domain_realm] in krb5.conf (`kvno` of that principal shows it). Client: its own principal was deleted or renamed. "
        "Then start it.",
    ),
    Told(
        "kerberos-key",
        re.compile(
            r"Checksum failed|Pre-authentication information was invalid|Integrity check on decrypted field failed|"
            r"Specified version of key is not available|Cannot find key of appropriate type to decrypt AP[ -]RE[PQ][\w -]{0,60}"
        ),
        "a keytab with the present key of its principal",
        "Its keytab is older than its key: compare key numbers (`klist -kte KEYTAB`, `kvno PRINCIPAL`), and put a new keytab "
        "there. Then start it.",
    ),
    Told(
        "kerberos-clock",
        re.compile(r"Clock skew too great(?: \(\d+\))?"),
        "clocks that agree with the KDC's to five minutes",
        "Set the clock of its host right (chronyc tracking). Then start it.",
    ),
    Told(
        "kerberos-keytab",
        re.compile(r"Unable to obtain password from user|the [cC]lient is being asked for a password"),
        "a keytab that its user may read, and that has its principal",
        "Its keytab is not there, its user may not read it, or it has not that principal (`klist -kt KEYTAB`, as Kafka's user; "
        "keyTab and principal in sasl.jaas.config or the JAAS file; with -Dsun.security.krb5.debug=true Java says which). Then "
        "start it.",
    ),
    Told(
        "kerberos-realm",
        re.compile(r"Cannot locate default realm"),
        "a krb5.conf with a default_realm",
        "Its krb5.conf is gone, cannot be read, or has no default_realm: put it back (/etc/krb5.conf, or where "
        "-Djava.security.krb5.conf in its KAFKA_OPTS leads). Then start it.",
    ),
    Told(
        "kerberos-encryption",
        re.compile(
            r"KDC has no support for encryption type(?: \(\d+\))?|Message stream modified(?: \(\d+\))?|"
            r"Encryption type [\w -]{1,60} is not supported(?:/enabled)?"
        ),
        "encryption types that its Java, its keytab and the KDC have in common",
        "Compare `klist -kte KEYTAB` with what the KDC gives that principal, default_tkt_enctypes and permitted_enctypes in "
        "krb5.conf, and what this Java allows (allow_weak_crypto, the system's policy: update-crypto-policies --show): make a "
        "new keytab with AES. `Message stream modified` comes of a realm that is written otherwise than the KDC's (upper "
        "case), or of renew_lifetime in krb5.conf with Java 11, too. Then start it.",
    ),
    Told(
        "token-not-fetched",
        re.compile(
            r"An internal error occurred while retrieving token from callback handler|"
            r"encountered an error when initializing the AccessTokenRetriever"
        ),
        "somebody who gives it tokens",
        "It gets no token (OAUTHBEARER): look whether its host reaches the token endpoint "
        "(sasl.oauthbearer.token.endpoint.url), what that answers, and whether client id and secret are still right. Nodes "
        "that run keep theirs as long as it is valid: restart none before. Then start it.",
        is_vague=True,
    ),
    Told(
        "kerberos-unreached",
        re.compile(
            r"(?:LoginException|KrbException): (?:Receive timed out|Cannot (?:locate|contact|get)[\w ]{1,60}|"
            r"Connection refused)"
        ),
        "a KDC that answers",
        "Look whether the KDC that its krb5.conf names runs and is reached (port 88), and whether its name is resolved. Its "
        "password or keytab is not what fails. Then start it.",
    ),
    Told(
        "jaas-entry-missing",
        re.compile(
            r"Could not find a '[\w.-]{1,60}'(?: or '[\w.-]{1,60}')? entry in (?:the|this) JAAS configuration|"
            r"No JAAS configuration section named '[\w.-]{1,60}' was found"
        ),
        "a login for every listener with SASL",
        "Give the listener's sasl.jaas.config in the node's properties, or -Djava.security.auth.login.config in KAFKA_OPTS a "
        "file with that section: compare with a node that runs. Then start it.",
    ),
    Told(
        "jaas-malformed",
        re.compile(
            r"JAAS config entry not terminated by semi-colon|Invalid login module control flag|Value not specified for key|"
            r"Login module (?:control flag )?(?:is )?not (?:specified|available)|"
            r"Configuration Error:|Line \d+: expected \[[^\]]{1,30}\]|"
            r"JAAS config property (?:does not contain|contains \d+)"
        ),
        "a JAAS text that can be parsed",
        'One module, `required`, name="value" pairs, and a semicolon at its end, in sasl.jaas.config or in the JAAS file '
        "(there a second one after the section's brace). Then start it.",
    ),
)

FIXES_OF_SERVERS = {
    "kerberos-keytab": "It has no keytab, its user may not read it, or that has not that principal (`klist -kt KEYTAB`, as "
    "ZooKeeper's user; keyTab and principal in its JAAS file; with -Dsun.security.krb5.debug=true Java says which). Then start "
    "it.",
    "kerberos-realm": "Its krb5.conf is gone, cannot be read, or has no default_realm: put it back (/etc/krb5.conf, or where "
    "-Djava.security.krb5.conf in its SERVER_JVMFLAGS leads). Then start it.",
    "jaas-entry-missing": "Give -Djava.security.auth.login.config in its SERVER_JVMFLAGS a file with that section (Server; "
    "QuorumServer and QuorumLearner where quorum.auth.enableSasl is true): compare with a member that runs. Then "
    "start it.",
    "jaas-malformed": 'One module, `required`, name="value" pairs and a semicolon, a second one after the section\'s brace, '
    "in its JAAS file (-Djava.security.auth.login.config in its SERVER_JVMFLAGS). Then start it.",
}
"""Of servers of ZooKeeper, by the name of the kind: they have a login in their JAAS file alone."""


def of_a_server(found: Found) -> Found:
    fix = FIXES_OF_SERVERS.get(found.told.name)
    return found if fix is None else replace(found, told=replace(found.told, fix=fix))
