package redact_test

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

const (
	digit = "0123456789"
	hex   = digit + "abcdef"
	small = "abcdefghijklmnopqrstuvwxyz"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alnum = digit + small + upper
	word  = alnum + "_"
	b64   = alnum + "+/"
)

// random returns n characters that depend only on the seed, so they are nobody's secret.
func random(seed, chars string, n int) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))
	r := rand.New(rand.NewPCG(h.Sum64(), uint64(n)))
	var b strings.Builder
	for range n {
		b.WriteByte(chars[r.IntN(len(chars))])
	}
	return b.String()
}

// fake is a made-up secret.
type fake struct {
	rule   string
	secret string
	around string // a text with %s for the secret, if only that text shows that it is one
}

// glue joins parts. It keeps secret scanners from finding the fakes in this file.
func glue(parts ...string) string { return strings.Join(parts, "") }

func fakes() []fake {
	of := func(rule, prefix, chars string, n int) fake {
		return fake{rule: rule, secret: prefix + random(rule+prefix, chars, n)}
	}
	end := func(f fake, tail string) fake { f.secret += tail; return f }
	in := func(f fake, around string) fake { f.around = around; return f }
	base64Lines := func(seed string, lines int) string {
		var b strings.Builder
		for i := range lines {
			b.WriteString(random(seed+string(rune('a'+i)), b64, 64) + "\n")
		}
		return b.String()
	}
	pem := func(kind string, lines int) string {
		return glue("-----BEGIN ", kind, "PRIVATE KEY-----\n") + base64Lines(kind, lines) +
			glue("Ab3=\n-----END ", kind, "PRIVATE KEY-----")
	}
	return []fake{
		of("loci-api-key", "loci_", upper+"234567", 40),
		in(of("loci-api-key", "loci_", upper+"234567", 40), "x_%s_y"),
		in(of("secret-key", "sk-", hex, 48), "key_%s_old"),
		of("anthropic-api-key", glue("sk-", "ant-api03-"), word, 41),
		of("openai-api-key", glue("sk-", "proj-"), word+"-", 57),
		in(of("named-secret", "k8", alnum, 18), "export DB_PASSWORD=%s"),
		in(end(of("named-secret", "k8", small, 19), "!"), `{"user":"bob","password":"%s"}`),
		in(end(of("named-secret", "k8", small, 19), "!"), `db.passwd = '%s'`),
		in(of("named-secret", "k8", alnum, 20), `"api_key": "%s"`),
		in(of("named-secret", "k8", hex, 20), `apiKey: "%s",`),
		in(of("named-secret", "k8", b64, 20), `client_secret=%s&grant_type=password`),
		in(of("named-secret", "k8", word, 20), `docker run -e APP_SECRET_KEY=%s app`),
		in(of("named-secret", "k8", small, 14), "export API_KEY=%s"),
		in(of("named-secret", "kqwv-", digit, 6), "docker run -e APP_SECRET_KEY=%s app"),
		in(of("named-secret", "k8", alnum, 20), "password: %s"),
		in(of("named-secret", "k8", hex, 20), "api_key: %s"),
		in(of("authorization-token", "k", small+upper, 31), "Authorization: Bearer %s"),
		of("aws-access-token", glue("AK", "IA"), upper+"234567", 16),
		in(of("aws-secret-access-key", "", b64, 40), "aws_secret_access_key = %s"),
		end(of("openai-api-key", glue("sk-", "proj-"), alnum, 74), glue("T3Blbk", "FJ")+random("o", alnum, 74)),
		of("secret-key", glue("sk-", "or-v1-"), hex, 64),
		of("secret-key", "sk-", hex, 32),
		of("anthropic-api-key", glue("sk-", "ant-oat01-"), word, 95),
		end(of("anthropic-api-key", glue("sk-", "ant-api03-"), word, 93), "AA"),
		of("github-pat", glue("gh", "p_"), alnum, 36),
		of("github-app-token", glue("gh", "s_"), alnum, 36),
		of("github-fine-grained-pat", glue("github", "_pat_"), word, 82),
		of("gitlab-pat", glue("gl", "pat-"), alnum, 20),
		of("gcp-api-key", glue("AI", "za"), alnum, 35),
		of("google-oauth-secret", glue("GOC", "SPX-"), alnum, 28),
		of("google-oauth-token", glue("ya", "29."), alnum, 120),
		of("stripe-access-token", glue("sk_", "live_"), alnum, 24),
		of("stripe-webhook-secret", glue("wh", "sec_"), alnum, 32),
		end(of("slack-bot-token", glue("xo", "xb-"), digit, 12), "-"+random("b", digit, 12)+"-"+random("c", alnum, 24)),
		of("slack-webhook-url", glue("https://hooks.slack", ".com/services/"), alnum, 44),
		end(of("telegram-bot-api-token", "", "123456789", 10), glue(":A", "A")+random("t", alnum, 33)),
		end(of("sendgrid-api-token", "SG.", alnum, 22), "."+random("s", alnum, 43)),
		of("npm-access-token", glue("np", "m_"), alnum, 36),
		of("pypi-upload-token", glue("pypi-", "AgEIcHlwaS5vcmc"), alnum, 120),
		of("huggingface-access-token", glue("h", "f_"), alnum, 34),
		of("groq-api-key", glue("gs", "k_"), alnum, 52),
		of("xai-api-key", glue("xa", "i-"), alnum, 80),
		of("replicate-api-token", glue("r", "8_"), alnum, 37),
		of("perplexity-api-key", glue("pp", "lx-"), alnum, 48),
		of("nvidia-api-key", glue("nv", "api-"), alnum, 64),
		end(of("langsmith-api-key", glue("ls", "v2_pt_"), hex, 32), "_"+random("l", hex, 10)),
		of("tavily-api-key", glue("tv", "ly-"), alnum, 32),
		of("pinecone-api-key", glue("pc", "sk_abc12_"), alnum, 60),
		of("supabase-token", glue("sb", "p_"), hex, 40),
		of("docker-access-token", glue("dckr", "_pat_"), alnum, 27),
		of("digitalocean-pat", glue("dop", "_v1_"), hex, 64),
		of("databricks-api-token", glue("da", "pi"), hex, 32),
		of("doppler-api-token", glue("dp.", "pt."), alnum, 43),
		of("linear-api-key", glue("lin_", "api_"), alnum, 40),
		of("notion-api-token", glue("nt", "n_12345678901"), alnum, 35),
		end(of("postman-api-token", glue("PM", "AK-"), hex, 24), "-"+random("p", hex, 34)),
		of("pulumi-api-token", glue("pu", "l-"), hex, 40),
		of("shopify-access-token", glue("shp", "at_"), hex, 32),
		end(of("grafana-service-account-token", glue("gl", "sa_"), alnum, 32), "_"+random("g", hex, 8)),
		of("vault-service-token", glue("hv", "s."), alnum, 95),
		of("age-secret-key", glue("AGE-", "SECRET-KEY-1"), "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
		of("figma-access-token", glue("fi", "gd_"), alnum, 40),
		end(of("tailscale-key", glue("ts", "key-auth-"), alnum, 12), "-"+random("k", alnum, 32)),
		of("sourcegraph-access-token", glue("sg", "p_"), hex, 40),
		of("atlassian-api-token", glue("AT", "ATT3"), alnum, 186),
		end(of("azure-ad-client-secret", "", alnum, 3), "8"+glue("Q", "~")+random("z", alnum, 34)),
		end(of("azure-storage-key", "", b64, 86), "==").in("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%s;"),
		end(of("jwt", glue("ey", "J"), alnum, 33), glue(".ey", "J")+random("j", alnum, 3000)+"."+random("w", alnum, 43)),
		{rule: "private-key", secret: pem("", 25)},
		{rule: "private-key", secret: pem("RSA ", 200)},
		{rule: "private-key", secret: pem("OPENSSH ", 6)},
		{rule: "url-password", secret: "hunter2!", around: "postgres://loci:%s@db.example.com:5432/loci?sslmode=require"},
		{rule: "url-password", secret: "p@ss%2Fword", around: "redis://:%s@cache:6379/0"},
		in(of("authorization-token", "", alnum+"._-", 40), "Authorization: Bearer x%sx"),
		{rule: "authorization-basic", secret: "bWFyaWE6c2VzYW1lIG9wZW4=", around: "Proxy-Authorization: Basic %s"},
		{rule: "url-password", secret: "p/hunter2", around: "postgres://u:%s@h/db"},
		{rule: "url-password", secret: "p?hunter#2", around: "amqp://u:%s@h/db"},
		{rule: "url-password", secret: "Null", around: "redis://default:%s@h:6379"},
		in(of("url-token", "k8Z", alnum, 15), "https://%s@git.example.com/x.git"),
		in(of("curl-user", "hunter2", small, 6), "curl -s -X POST -u bob:%s https://x.example"),
		of("twilio-api-key", "SK", hex, 32),
		in(of("authorization-value", "k8Z", alnum, 15), "Authorization: %s"),
		in(of("authorization-token", "k8Z", alnum, 15), `Authorization: Token token="%s"`),
		in(of("authorization-token", "k8Z", alnum, 15), "headers={'Authorization': f'Bearer %s'}"),
		in(of("authorization-basic", "k8Z", alnum, 15), "Authorization: Basic %s"),
		in(of("authorization-signature", "1a2", hex, 29), `Authorization: Digest username="bob", nonce="n", response="%s"`),
		in(of("authorization-value", "0a1b2", hex, 30), `HTTP_AUTHORIZATION=%s`),
	}
}

func (f fake) in(around string) fake { f.around = around; return f }
