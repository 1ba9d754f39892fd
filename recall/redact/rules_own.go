package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// A token begins at a word boundary or behind an escape of JSON or of a URL. It ends before a byte that no token
// contains.
const (
	shapeStart = `(?:\b|_|\\{1,4}[nrtbf]|\\{1,4}u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})`
	shapeEnd   = `(?:[^A-Za-z0-9-]|$)`
)

// authorizationHeader matches the beginning of an Authorization header in HTTP, JSON, code or a command line.
const authorizationHeader = `(?i)authorization\\{0,4}["']?\s{0,4}[:=,]>?\s{0,4}\\{0,4}(?:[bfru]{0,2}["'\x60])?`

// farAhead replaces windowAhead for tokens that carry data, such as JWTs.
const farAhead = 16 << 10

// token returns a rule for a token with a provider's prefix. keywords are that prefix. longest includes the characters
// around the token.
func token(id, shape string, entropy float64, longest int, keywords ...string) rule {
	return rule{ID: id, Pattern: shapeStart + "(" + shape + ")" + shapeEnd, Exact: keywords, Entropy: entropy,
		Longest: longest, Certain: true}
}

// authorization returns a rule for the value of an Authorization header. The value must have at least minDigits digits,
// or letters in random case.
func authorization(id, value string, minDigits int) rule {
	return rule{ID: id, Pattern: authorizationHeader + value, Folded: []string{"authorization"}, Certain: true,
		ahead: farAhead, accept: func(s string) bool { return digits(s) >= minDigits || isJumbled(s) }}
}

// The ends of names that only secrets have, and the ways in which values follow: in quotes as in JSON and code, or
// behind a = as in settings files, command lines and URLs.
const (
	passwordNames = `(?i:pass(?:word|wd|phrase))` //nolint:gosec // a pattern, no password
	keyNames      = `(?i:secret(?:[_-]?(?:key|token))?|api[_-]?(?:key|token|secret)|` +
		`(?:access|auth|bot|client)[_-]?(?:token|secret|key))`

	quoted = `\\{0,8}["']?\s{0,4}(?::=?|=>?)\s{0,4}\\{0,8}["'\x60]` +
		`([^\s"'\x60\\<>{}()\[\],;]{8,128})\\{0,8}["'\x60]`
	assigned = `=([^\s"'\x60\\<>{}()\[\],;&|]{8,128})`

	// Settings of environments and of YAML: a name in capitals before a =, and a name before a colon.
	setting = `(?:PASS(?:WORD|WD|PHRASE)|SECRET(?:_(?:KEY|TOKEN))?|API_?(?:KEY|TOKEN|SECRET)|` +
		`(?:ACCESS|AUTH|BOT|CLIENT)_(?:TOKEN|SECRET|KEY))`
	mapped  = `\\{0,8}["']?:[ \t]{1,4}([^\s"'\x60\\<>{}()\[\],;&|]{8,128})`
	lineEnd = `[ \t]{0,8}(?:[\r\n\\#"'\x60]|$)`
)

// named returns a rule for a value with a name that says that it is a secret.
func named(pattern string, accept func(string) bool) rule {
	return rule{ID: "named-secret", Pattern: pattern, Folded: []string{"pass", "secret", "key", "token"}, Longest: 200,
		Certain: true, accept: accept}
}

// ownRules are rules that gitleaks lacks, or that match too much or too little there. They come first, so that their
// names win if gitleaks finds the same secret.
var ownRules = []rule{
	{ID: "private-key", Exact: []string{"-----BEGIN"}, Certain: true, find: privateKey},
	{ID: "private-key-base64", Pattern: `LS0tLS1CRUdJTi[A-Za-z0-9+/]{50,}={0,2}`, Exact: []string{"LS0tLS1CRUdJTi"},
		Certain: true, ahead: farAhead, accept: isEncodedKey},
	token("loci-api-key", `loci_[A-Z2-7]{40}`, 0, 60, "loci_"),
	{ID: "jwt", Pattern: shapeStart + `(eyJ[\w-]{14,}\.eyJ[\w-]{14,}\.[\w-]{10,}={0,2})` + shapeEnd,
		Exact: []string{"eyJ"}, Entropy: 3, Certain: true, ahead: farAhead},
	{ID: "url-password", Pattern: `[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/?#:@"'<>\\\x60]{0,128}:` +
		`((?:[^\s/?#"'<>\\\x60]|\\u00[0-9a-fA-F]{2}){3,256})@[^\s@"'\\]`, Exact: []string{"://"}, Longest: 1600,
		Certain: true, Named: true, near: hasUser, accept: isPassword},
	{ID: "url-password", Pattern: `(?i)(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|` +
		`clickhouse|nats|ldaps?|s?ftps?|smtps?|imaps?)(?:\+\w{1,16})?://[^\s/?#:@"'<>\\\x60]{0,128}:` +
		`(?:\\{0,8}["']([^\s"'@\\]{3,128})\\{0,8}["']|([^\s"'@<>\\\x60]{3,256}))@[^\s@"'\\]`, Exact: []string{"://"},
		Longest: 600, Certain: true, Named: true, near: hasUser, accept: isPassword},
	{ID: "url-token", Pattern: `(?i)https?://([\w-]{16,255})@[^\s@"'\\]`, Exact: []string{"://"}, Longest: 300,
		Certain: true, near: hasUser, accept: isMixed},
	{ID: "curl-user", Pattern: shapeStart + `curl\b[^|;\r\n]{0,300}?\s(?:-u|--user)[\s=]{0,4}\\{0,8}["']?` +
		`[^\s:"'\\<>]{1,64}:([^\s"'\\<>]{3,128})`, Exact: []string{"curl"}, Longest: 520, Certain: true, accept: isPassword},
	{ID: "authorization-basic", Pattern: authorizationHeader + `basic\s{1,4}([A-Za-z0-9+/]{8,}={0,2})`,
		Folded: []string{"authorization"}, Certain: true,
		accept: func(s string) bool { return isCredentials(s) || isMixed(s) }},
	{ID: "authorization-signature", Pattern: authorizationHeader + `(?:digest|aws4-hmac-sha256)\s[^\r\n]{0,600}?` +
		`\b(?:response|signature)=\\{0,8}["']?(\w{16,128})`, Folded: []string{"authorization"}, Certain: true,
		accept: func(s string) bool { return digits(s) > 1 }},
	authorization("authorization-token", `(?:bearer|token|bot|jwt|key|(?:api|sso|genie|klaviyo-api)[-_]?(?:key|token)|`+
		`negotiate|ntlm|ssws|hawk|aws4-hmac-sha256|zoho-oauthtoken|pveapitoken)[\s=]{1,4}(?:token=)?\\{0,8}["']?`+
		`([\w.~+/=-]{10,})`, 1),
	authorization("authorization-value", `([\w.~+/=-]{20,})(?:["'\x60\s\\<,;)}\]]|$)`, 3),
	{ID: "authorization-value", Pattern: authorizationHeader + `([\w.~+/=-]{16,19})(?:["'\x60\s\\<,;)}\]]|$)`,
		Folded: []string{"authorization"}, Certain: true, accept: isMixed},
	named(setting+assigned+`(?:[\s"'\x60\\&,;)}\]]|$)`, isChosen),
	named(passwordNames+mapped+lineEnd, isChosenValue),
	named(`(?:`+passwordNames+`|`+keyNames+`)`+mapped+`(?:[\s"'\x60\\&,;)}\]]|$)`, isChosenKey),
	named(passwordNames+`(?:`+quoted+`|`+assigned+`(?:[\s"'\x60\\&]|$))`, isChosen),
	named(`(?:`+passwordNames+`|`+keyNames+`)(?:`+quoted+`|`+assigned+`(?:[\s"'\x60\\&,;)}\]]|$))`, isChosenKey),
	{ID: "aws-secret-access-key", Pattern: `(?i)aws_?secret_?(?:access_?)?key[\s"'\\]{0,6}[:=][\s"'\\]{0,6}` +
		`([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`, Folded: []string{"aws_secret", "awssecret"}, Entropy: 3.5, Longest: 90,
		Certain: true},
	{ID: "azure-storage-key", Pattern: `AccountKey=([A-Za-z0-9+/]{86}==)`, Exact: []string{"AccountKey="}, Longest: 100,
		Certain: true},
	{ID: "azure-sas-signature", Pattern: `[?&;]sig=([A-Za-z0-9%]{43,63}%3[dD])`, Exact: []string{"sig="}, Longest: 80,
		Certain: true},

	// The patterns of gitleaks for these match more than the providers' tokens.
	token("atlassian-api-token", `AT[AC]TT3[\w=-]{100,250}`, 3.5, 270, "ATATT3", "ATCTT3"),
	{ID: "azure-ad-client-secret", Pattern: `(?:^|[^\w~.\\-]|\\{1,4}[nrt"'/])([\w~.]{3}[0-9]Q~[\w~.-]{31,34})` + shapeEnd,
		Exact: []string{"Q~"}, Entropy: 3, Longest: 60, Certain: true},
	{ID: "aws-bedrock-api-key", Pattern: `(bedrock-api-key-[A-Za-z0-9+/=_-]{40,})`, Exact: []string{"bedrock-api-key-"},
		Entropy: 3, Certain: true},
	token("huggingface-access-token", `hf_[A-Za-z0-9]{34,40}`, 3, 60, "hf_"),
	token("sonar-api-token", `sq[pua]_[a-f0-9]{40}`, 0, 60, "sqp_", "squ_", "sqa_"),
	token("sourcegraph-access-token", `sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}`, 0, 80, "sgp_"),
	token("square-access-token", `sq0[a-z]{3}-[\w-]{22,60}`, 0, 90, "sq0"),
	token("telegram-bot-api-token", `[0-9]{8,10}:AA[\w-]{33}`, 0, 60, ":AA"),
	token("twilio-api-key", `SK[0-9a-f]{32}`, 3, 60, "SK"),
	token("vault-service-token", `hvs\.[\w-]{90,120}`, 3.5, 140, "hvs."),

	// gitleaks lacks these.
	token("anthropic-api-key", `sk-ant-[a-z]{3,6}[0-9]{2}-[\w-]{16,240}`, 3, 280, "sk-ant-"),
	token("openai-api-key", `sk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9][\w-]{18,180}T3BlbkFJ[\w-]{18,180}`,
		3, 400, "T3BlbkFJ"),
	{ID: "openai-api-key", Pattern: shapeStart + `(sk-(?:proj|svcacct|admin)-[\w-]{20,300})` + shapeEnd,
		Exact: []string{"sk-"}, Entropy: 3.5, Longest: 340, Certain: true,
		accept: func(s string) bool { return digits(s) > 2 }},
	{ID: "secret-key", Pattern: shapeStart + `(sk-(?:[a-z]{2,8}-){0,2}(?:v[0-9]-)?[A-Za-z0-9]{32,160})` + shapeEnd,
		Exact: []string{"sk-"}, Entropy: 3.3, Longest: 210, Certain: true,
		accept: func(s string) bool { return digits(s) > 2 }},
	{ID: "discord-bot-token", Pattern: shapeStart + `([MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,38})` + shapeEnd,
		Folded: []string{"discord"}, Entropy: 4, Certain: true},
	token("docker-access-token", `dckr_(?:pat|oat)_[\w-]{27,40}`, 0, 60, "dckr_"),
	token("figma-access-token", `fig[duo]r?_[\w-]{40,60}`, 3.5, 80, "figd_", "figu_", "figo_", "figur_"),
	token("google-oauth-secret", `GOCSPX-[\w-]{28}`, 0, 50, "GOCSPX-"),
	token("google-oauth-token", `ya29\.[\w-]{40,1000}`, 0, 1020, "ya29."),
	token("groq-api-key", `gsk_[A-Za-z0-9]{48,56}`, 0, 80, "gsk_"),
	token("langsmith-api-key", `lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}`, 0, 70, "lsv2_"),
	token("nvidia-api-key", `nvapi-[\w-]{60,80}`, 0, 100, "nvapi-"),
	token("pinecone-api-key", `pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,80}`, 0, 110, "pcsk_"),
	token("replicate-api-token", `r8_[A-Za-z0-9]{37}`, 3.5, 60, "r8_"),
	token("stripe-webhook-secret", `whsec_[A-Za-z0-9+/]{32,64}={0,2}`, 0, 90, "whsec_"),
	token("supabase-token", `sbp_[a-f0-9]{40}|sb_secret_[\w-]{22,50}`, 0, 80, "sbp_", "sb_secret_"),
	token("tailscale-key", `tskey-[a-z]{3,12}-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{16,64}`, 0, 130, "tskey-"),
	token("tavily-api-key", `tvly-(?:dev-|prod-)?[A-Za-z0-9]{32,50}`, 0, 80, "tvly-"),
	token("xai-api-key", `xai-[A-Za-z0-9]{70,90}`, 0, 110, "xai-"),
}

// nearBytes is how far behind the :// of a URL a password may stand.
const nearBytes = 384

// hasUser reports whether a user, a token or a password may follow the :// that ends at a position.
func hasUser(text string, end int) bool {
	user, _, found := strings.Cut(text[end:min(len(text), end+nearBytes)], "@")
	if !found || strings.ContainsAny(user, " \t\r\n<>`") {
		return false
	}
	name, _, _ := strings.Cut(user, ":")
	return !strings.ContainsAny(name, "/?#\"'")
}

// placeholderPasswords are words that documents write instead of a password.
var placeholderPasswords = map[string]bool{"pass": true, "password": true, "passwd": true, "pwd": true, "secret": true,
	"token": true, "redacted": true, "your_password": true, "your-password": true, "yourpassword": true}

// isPassword reports whether a text is a password, and not a variable, a mask or the word password.
func isPassword(s string) bool {
	variable := strings.ContainsAny(s[:1], "$%{[(*") && !strings.HasPrefix(s, "%25") && !isHexEscape(s)
	masked := strings.Trim(s, s[:1]) == ""
	path := strings.IndexAny(s, "/?#") // a number before a path is a port
	return (path < 0 || !isNumber(s[:path])) && !variable && !masked && !strings.Contains(s, "${") &&
		!placeholderPasswords[strings.ToLower(s)]
}

func isHexEscape(s string) bool {
	return len(s) > 2 && s[0] == '%' && strings.Trim(s[1:3], "0123456789abcdefABCDEF") == ""
}

// isCredentials reports whether a text is "user:password" in base64.
func isCredentials(s string) bool {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return err == nil && strings.IndexByte(string(raw), ':') >= 0
}

// isMixed reports whether a text has the length and letters of a random token, unlike any word or name.
func isMixed(s string) bool {
	return len(s) >= 16 && digits(s) > 1 && strings.ToLower(s) != s && strings.ToUpper(s) != s
}

var (
	rises = regexp.MustCompile(`[a-z][A-Z]`)
	runs  = regexp.MustCompile(`[A-Z][A-Z]`)
)

// isJumbled reports whether a text has the length and the changes of case of a random token.
func isJumbled(s string) bool {
	return len(s) >= 20 && len(rises.FindAllString(s, 3)) == 3 && runs.MatchString(s)
}

// isEncodedKey reports whether a text is the base64 of a PEM block with a private key.
func isEncodedKey(s string) bool {
	raw, err := base64.StdEncoding.DecodeString(s[:min(len(s), 48)])
	return err == nil && strings.Contains(string(raw), keyLabel)
}

// samples are the words that placeholders consist of, by their first letter. The first that fits is taken.
var samples = byLetter("change me my your you own here the this is an a for with some any new old " +
	"password passphrase passwd pass pwd secret token api key access auth client " +
	"username user admin root testing test example sample demo dummy fake mock place " +
	"holder value string text default foo bar baz qux abcdef abc xyz long random " +
	"super insert enter replace")

func byLetter(words string) (of [256][]string) {
	for word := range strings.FieldsSeq(words) {
		of[word[0]] = append(of[word[0]], word)
	}
	return of
}

// hasMoreThanSamples reports whether more than three bytes of a text are left after removing samples, numbers and
// punctuation.
func hasMoreThanSamples(s string) bool {
	lower := asciiLower(s)
	rest := 0
	for i := 0; i < len(lower) && rest <= 3; {
		n := sampleAt(lower[i:])
		if n == 0 {
			rest, n = rest+1, 1
		}
		i += n
	}
	return rest > 3
}

// sampleAt returns the length of the sample, number or punctuation at the start of a lower-case text; 0 if there is
// none.
func sampleAt(s string) (n int) {
	if c := s[0]; c < 'a' || c > 'z' {
		return 1
	}
	for _, word := range samples[s[0]] {
		if strings.HasPrefix(s, word) {
			return len(word)
		}
	}
	if n = len(s) - len(strings.TrimLeft(s, "x")); n >= 2 {
		return n
	}
	return 0
}

func asciiLower(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// identifiers matches names such as s3_bucket and V1Secret.
var identifiers = regexp.MustCompile(`^[A-Za-z]{0,2}[0-9]{0,2}([/_.-]?([A-Z]?[a-z]+|[A-Z]+))*` +
	`([/_.-]?[A-Za-z]{0,2}[0-9]+)?([/_.-]?([A-Z]?[a-z]+|[A-Z]+))*$`)

// isChosen reports whether a text is a password that somebody chose, and not a variable, a path or a word for a
// password.
func isChosen(s string) bool {
	return digits(s) > 0 && !strings.ContainsAny(s[:1], "/.~@%*$-") && hasKinds(s, 6) && hasMoreThanSamples(s) &&
		!strings.Contains(s, "://") && !strings.Contains(s, "/secrets/")
}

// hasKinds reports whether a text has at least n different characters.
func hasKinds(s string, n int) bool {
	var seen []rune
	for _, c := range s {
		if !slices.Contains(seen, c) {
			if seen = append(seen, c); len(seen) >= n {
				return true
			}
		}
	}
	return false
}

// isChosenKey reports whether a text is a key, and not a key's name.
func isChosenKey(s string) bool {
	return isChosen(s) && (isJumbled(s) || !identifiers.MatchString(s))
}

// isChosenValue reports whether the value of a setting named password is a password, and not the name of a variable or
// a type.
func isChosenValue(s string) bool {
	return isChosen(s) && !rises.MatchString(s) && !strings.ContainsAny(s, "._")
}

func digits(s string) (n int) {
	for i := range len(s) {
		if '0' <= s[i] && s[i] <= '9' {
			n++
		}
	}
	return n
}
