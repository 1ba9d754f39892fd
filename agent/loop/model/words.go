package model

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/compaction/llm"
)

// IsOverflow reports whether an answer with this status and these words says that a prompt is longer than the model's
// window.
func IsOverflow(status int, words string) bool { return llm.IsOverflow(status, []byte(words)) }

// IsContent reports whether an answer with this status and these words refuses a prompt for its content. Refusals for
// its size, or for a key, a model's name or a limit, do not count.
func IsContent(status int, words string) bool {
	if IsOverflow(status, words) || isFlaggedAlone(status, words) {
		return !IsOverflow(status, words)
	}
	ofKey := status == http.StatusBadRequest && aboutKey.MatchString(words)
	return !ofKey && !hasNoCredit(words) && isContent(status, words)
}

// isFlaggedAlone reports whether an answer's words are about moderation and nothing else. Then its status does not
// matter, because some gateways use one that otherwise is about a key, an account or a limit.
func isFlaggedAlone(status int, words string) bool {
	return status >= http.StatusBadRequest && isFlagged.MatchString(words) && !aboutOthers.MatchString(words)
}

func isContent(status int, words string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity:
		return isFlagged.MatchString(words) || !isAboutOthers(words)
	case http.StatusUnavailableForLegalReasons:
		return true
	case http.StatusUnauthorized, http.StatusPaymentRequired:
		return false
	}
	return status >= http.StatusBadRequest && !isLimit(status) && (isFlagged.MatchString(words) ||
		!aboutOthers.MatchString(words) && aboutMedia.MatchString(words))
}

// isAboutOthers reports whether the words of an answer with status 400 are not about the prompt's messages.
func isAboutOthers(words string) bool {
	return (aboutOthers.MatchString(words) || aboutSettings.MatchString(words)) && !inMessages.MatchString(words)
}

// isLimit reports whether a status means that a provider takes no requests at present.
func isLimit(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == overloaded
}

// isFlagged matches providers' words when moderation refuses a text, whatever the status.
var isFlagged = regexp.MustCompile(`(?i)\bflagged|moderation|content[ _-]?(?:policy|filter|management)|` +
	`(?:usage|safety|acceptable[ _]use)[ _](?:polic|guideline)|violat\w+ [^.]{0,40}\b(?:polic|guideline)|` +
	`content exists risk|(?:inappropriate|prohibited|harmful|unsafe) content|data_?inspection|new_sensitive|` +
	`PROHIBITED_CONTENT|considered high risk|guardrail|` +
	`审核未通过|违规|违反[^。]{0,20}(?:政策|规定|准则)|敏感(?:内容|词|信息)|不当内容|内容安全|` +
	`ポリシー[^。]{0,20}違反|不適切な(?:コンテンツ|内容)|정책[^.]{0,20}위반|부적절한 (?:콘텐츠|내용)|` +
	`verst(?:ö|oe)(?:ß|ss)t[^.]{0,60}(?:richtlinie|bedingung)|модерац|наруш\pL*[^.]{0,60}(?:политик|правил)|` +
	`(?:enfrein|viol)\pL*[^.]{0,60}(?:politique|règle)|modération|` +
	`(?:infring|viol|incumpl)\pL*[^.]{0,60}(?:política|norma)|moderaci[óo]n|moderação`)

// aboutMedia matches providers' words when they cannot use an image or other media in a prompt.
var aboutMedia = regexp.MustCompile(`(?i)\b(?:image|audio|video|picture|pdf|media)s?[ _]?(?:input|url|content|data)?` +
	`\b[^.]{0,60}(?:cannot|could not|can't|unable|invalid|unsupported|not support|too (?:large|big)|exceed|corrupt|` +
	`fail)|(?:cannot|could not|can't|unable|invalid|unsupported|not? [^.]{0,20}support|too (?:large|big)|exceed|` +
	`corrupt|fail)[^.]{0,60}\b(?:image|audio|video|picture|pdf|media)s?\b|supports? (?:image|audio|video|vision|pdf|file)`)

// aboutOthers matches providers' words with status 400 about a key, a model's name or a limit.
var aboutOthers = regexp.MustCompile(`(?i)api[ _-]?key|authenticat|unauthorized|permission[ _]denied|` +
	`\bmodel\b[^.]{0,80}(?:does not exist|not exist|not found|is not a valid)|(?:invalid|unknown|unsupported)[ _]model|` +
	`model_not_found|not a valid model|rate[ _-]?limit|too many requests|quota|billing|` +
	`(?:organi[sz]ation|account|project|subscription)[^.]{0,30} (?:disabled|deactivated|suspended|restricted|expired)|` +
	`(?:location|country|region|territory)[^.]{0,40}not (?:supported|available)|账[号户]|欠费|余额|密钥`)

// aboutSettings matches providers' words about a setting of the request that they do not accept; then no message is to
// blame.
var aboutSettings = regexp.MustCompile(`(?i)(?:unsupported|unknown|unrecognized)(?: request)? (?:parameter|argument|` +
	`values?: '(?:temperature|reasoning|top_p|tool))|tool[ _-]choice|does not support (?:tool|function|streaming|` +
	`thinking|reasoning|temperature)|max_(?:completion_)?tokens|\b(?:temperature|top_p|reasoning_effort|` +
	`budget_tokens)\b`)

// inMessages matches places in a request by which a provider names a message of the prompt.
var inMessages = regexp.MustCompile(`(?i)\b(?:messages?|contents?|input)(?:\[|\.)\d`)

// aboutKey matches providers' words with status 400 about a key that they do not accept.
var aboutKey = regexp.MustCompile(`(?i)api[ _-]?key (?:is |has )?(?:not valid|invalid|expired|not found|missing|` +
	`disabled)|(?:invalid|incorrect|expired|missing) (?:x-)?api[ _-]?key|API_KEY_INVALID|authentication_error`)

// overloaded is Anthropic's status for taking no requests at present.
const overloaded = 529

// hasNoCredit reports whether an error says that the account has no credit. Gemini uses one of the wordings for limits
// that pass.
func hasNoCredit(body string) bool {
	return strings.Contains(body, "insufficient_quota") || strings.Contains(body, "credit balance") ||
		strings.Contains(body, "specified API usage limits") || strings.Contains(body, "billing_hard_limit_reached") ||
		strings.Contains(body, "exceeded your current quota") && !strings.Contains(body, "RESOURCE_EXHAUSTED")
}
