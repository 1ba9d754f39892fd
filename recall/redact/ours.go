package redact

import (
	"encoding/base64"
	"strings"
)

// What a secret may follow beside a character that is in no word: an escape of JSON or of a URL. What it may end before.
const (
	start = `(?:\b|\\{1,4}[nrtbf]|\\{1,4}u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})`
	stop  = `(?:[^\w-]|$)`
)

// header is how an Authorization header begins, be it in HTTP, JSON, code or on a command line.
const header = `(?i)authorization\\{0,4}["']?\s{0,4}[:=,]>?\s{0,4}\\{0,4}["'\x60]?`

// farAhead is where tokens may end that carry much.
const farAhead = 16 << 10

// ourRules are the rules that gitleaks lacks, or has in a form that takes too much or too little. They come first: of two rules for the
// same stretch the first names it.
var ourRules = []rule{
	{id: "private-key", words: []string{"-----BEGIN"}, certain: true, find: privateKey},
	{id: "private-key-base64", pattern: `LS0tLS1CRUdJTi[A-Za-z0-9+/]{50,}={0,2}`, words: []string{"LS0tLS1CRUdJTi"}, certain: true,
		ahead: farAhead, accept: isEncodedKey},
	{id: "loci-api-key", pattern: start + `(loci_[A-Z2-7]{40})` + stop, words: []string{"loci_"}, longest: 60, certain: true},
	{id: "jwt", pattern: start + `(eyJ[\w-]{14,}\.eyJ[\w-]{14,}\.[\w-]{10,}={0,2})` + stop, words: []string{"eyJ"}, entropy: 3,
		certain: true, ahead: farAhead},
	{id: "url-password", pattern: `[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/?#:@"'<>\\\x60]{0,128}:` +
		`((?:[^\s/?#"'<>\\\x60]|\\u00[0-9a-fA-F]{2}){3,256})@[^\s@"'\\]`, words: []string{"://"}, longest: 1600, certain: true,
		near: hasUser, accept: isPassword},
	{id: "authorization-basic", pattern: header + `basic\s{1,4}([A-Za-z0-9+/]{8,}={0,2})`, folded: []string{"authorization"},
		certain: true, accept: isCredentials},
	{id: "authorization-token", pattern: header + `(?:bearer|token|bot|jwt|key|(?:api|sso|genie|klaviyo-api)[-_]?(?:key|token)|negotiate|ntlm|` +
		`ssws|hawk|aws4-hmac-sha256|zoho-oauthtoken|pveapitoken)[\s=]{1,4}\\{0,4}["']?([\w.~+/=-]{10,})`, folded: []string{"authorization"},
		certain: true, ahead: farAhead, accept: func(s string) bool { return digits(s) > 0 }},
	{id: "authorization-value", pattern: header + `([\w.~+/=-]{20,})(?:["'\x60\s\\<,;)}\]]|$)`, folded: []string{"authorization"},
		certain: true, ahead: farAhead, accept: func(s string) bool { return digits(s) > 2 }},
	{id: "aws-secret-access-key", pattern: `(?i)aws_?secret_?(?:access_?)?key[\s"'\\]{0,6}[:=][\s"'\\]{0,6}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`,
		folded: []string{"aws_secret", "awssecret"}, entropy: 3.5, longest: 90, certain: true},
	{id: "azure-storage-key", pattern: `AccountKey=([A-Za-z0-9+/]{86}==)`, words: []string{"AccountKey="}, longest: 100, certain: true},
	{id: "azure-sas-signature", pattern: `[?&;]sig=([A-Za-z0-9%]{43,63}%3[dD])`, words: []string{"sig="}, longest: 80, certain: true},

	// Of those below gitleaks has a shape that takes more than the provider's.
	{id: "atlassian-api-token", pattern: start + `(AT[AC]TT3[\w=-]{100,250})` + stop, words: []string{"ATATT3", "ATCTT3"}, entropy: 3.5,
		longest: 270, certain: true},
	{id: "azure-ad-client-secret", pattern: `(?:^|[^\w~.\\-]|\\{1,4}[nrt"'/])([\w~.]{3}[0-9]Q~[\w~.-]{31,34})` + stop, words: []string{"Q~"},
		entropy: 3, longest: 60, certain: true},
	{id: "aws-bedrock-api-key", pattern: `(bedrock-api-key-[A-Za-z0-9+/=_-]{40,})`, words: []string{"bedrock-api-key-"}, entropy: 3,
		certain: true},
	{id: "huggingface-access-token", pattern: start + `(hf_[A-Za-z0-9]{34,40})` + stop, words: []string{"hf_"}, entropy: 3, longest: 60,
		certain: true},
	{id: "sonar-api-token", pattern: start + `(sq[pua]_[a-f0-9]{40})` + stop, words: []string{"sqp_", "squ_", "sqa_"}, longest: 60, certain: true},
	{id: "sourcegraph-access-token", pattern: start + `(sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40})` + stop, words: []string{"sgp_"},
		longest: 80, certain: true},
	{id: "square-access-token", pattern: start + `(sq0[a-z]{3}-[\w-]{22,60})` + stop, words: []string{"sq0"}, longest: 90, certain: true},
	{id: "telegram-bot-api-token", pattern: start + `([0-9]{8,10}:AA[\w-]{33})` + stop, words: []string{":AA"}, longest: 60,
		certain: true},
	{id: "vault-service-token", pattern: start + `(hvs\.[\w-]{90,120})` + stop, words: []string{"hvs."}, entropy: 3.5, longest: 140,
		certain: true},

	// Of those below it has none.
	{id: "anthropic-api-key", pattern: start + `(sk-ant-[a-z]{3,6}[0-9]{2}-[\w-]{60,120})` + stop, words: []string{"sk-ant-"}, entropy: 3,
		longest: 150, certain: true},
	{id: "openai-api-key", pattern: start + `(sk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9][\w-]{18,180}T3BlbkFJ[\w-]{18,180})` + stop,
		words: []string{"T3BlbkFJ"}, entropy: 3, longest: 400, certain: true},
	{id: "secret-key", pattern: start + `(sk-(?:[a-z]{2,8}-){0,2}(?:v[0-9]-)?[A-Za-z0-9]{32,160})` + stop, words: []string{"sk-"},
		entropy: 3.3, longest: 210, certain: true, accept: func(s string) bool { return digits(s) > 2 }},
	{id: "discord-bot-token", pattern: start + `([MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,38})` + stop, folded: []string{"discord"},
		entropy: 4, certain: true},
	{id: "docker-access-token", pattern: start + `(dckr_(?:pat|oat)_[\w-]{27,40})` + stop, words: []string{"dckr_"}, longest: 60, certain: true},
	{id: "figma-access-token", pattern: start + `(fig[duo]r?_[\w-]{40,60})` + stop, words: []string{"figd_", "figu_", "figo_", "figur_"},
		entropy: 3.5, longest: 80, certain: true},
	{id: "google-oauth-secret", pattern: start + `(GOCSPX-[\w-]{28})` + stop, words: []string{"GOCSPX-"}, longest: 50, certain: true},
	{id: "google-oauth-token", pattern: start + `(ya29\.[\w-]{40,1000})` + stop, words: []string{"ya29."}, longest: 1020, certain: true},
	{id: "groq-api-key", pattern: start + `(gsk_[A-Za-z0-9]{48,56})` + stop, words: []string{"gsk_"}, longest: 80, certain: true},
	{id: "langsmith-api-key", pattern: start + `(lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10})` + stop, words: []string{"lsv2_"}, longest: 70,
		certain: true},
	{id: "nvidia-api-key", pattern: start + `(nvapi-[\w-]{60,80})` + stop, words: []string{"nvapi-"}, longest: 100, certain: true},
	{id: "pinecone-api-key", pattern: start + `(pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,80})` + stop, words: []string{"pcsk_"}, longest: 110,
		certain: true},
	{id: "replicate-api-token", pattern: start + `(r8_[A-Za-z0-9]{37})` + stop, words: []string{"r8_"}, entropy: 3.5, longest: 60, certain: true},
	{id: "stripe-webhook-secret", pattern: start + `(whsec_[A-Za-z0-9+/]{32,64}={0,2})` + stop, words: []string{"whsec_"}, longest: 90,
		certain: true},
	{id: "supabase-token", pattern: start + `(sbp_[a-f0-9]{40}|sb_secret_[\w-]{22,50})` + stop, words: []string{"sbp_", "sb_secret_"},
		longest: 80, certain: true},
	{id: "tailscale-key", pattern: start + `(tskey-[a-z]{3,12}-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{16,64})` + stop, words: []string{"tskey-"},
		longest: 130, certain: true},
	{id: "tavily-api-key", pattern: start + `(tvly-(?:dev-|prod-)?[A-Za-z0-9]{32,50})` + stop, words: []string{"tvly-"}, longest: 80, certain: true},
	{id: "xai-api-key", pattern: start + `(xai-[A-Za-z0-9]{70,90})` + stop, words: []string{"xai-"}, longest: 110, certain: true},
}

// nearBytes is how far a URL's user is looked for.
const nearBytes = 512

// hasUser tells whether a user and a password may follow the :// of a URL that ends here.
func hasUser(text string, end int) bool {
	text = text[end:min(len(text), end+nearBytes)]
	colon := false
	for i := range len(text) {
		switch text[i] {
		case '@':
			return colon
		case ':':
			colon = true
		case '/', '?', '#', ' ', '\t', '\r', '\n', '"', '\'', '<', '>', '`':
			return false
		}
	}
	return false
}

// passwords are what documents write for one.
var passwords = map[string]bool{"pass": true, "password": true, "passwd": true, "pwd": true, "secret": true, "token": true, "redacted": true,
	"your_password": true, "your-password": true, "yourpassword": true}

// isPassword tells a password from what stands for one: a variable, a mask, its name.
func isPassword(s string) bool {
	if strings.ContainsAny(s[:1], "$%{[(*") && !strings.HasPrefix(s, "%25") && !isHexEscape(s) || strings.Contains(s, "${") {
		return false
	}
	return strings.Trim(s, s[:1]) != "" && !passwords[strings.ToLower(s)]
}

func isHexEscape(s string) bool {
	return len(s) > 2 && s[0] == '%' && strings.Trim(s[1:3], "0123456789abcdefABCDEF") == ""
}

// isCredentials tells whether a text is a user and a password in base64.
func isCredentials(s string) bool {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return err == nil && strings.IndexByte(string(raw), ':') >= 0
}

// isEncodedKey tells whether a text is a block of PEM in base64 that is a private key.
func isEncodedKey(s string) bool {
	raw, err := base64.StdEncoding.DecodeString(s[:min(len(s), 48)])
	return err == nil && strings.Contains(string(raw), keyLabel)
}

func digits(s string) (n int) {
	for i := range len(s) {
		if '0' <= s[i] && s[i] <= '9' {
			n++
		}
	}
	return n
}
