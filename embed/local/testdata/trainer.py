"""Trains the small tokenizers of testdata/tokenizers, and writes what they make of the texts of testdata/pieces.jsonl and of more.

    python3 trainer.py TEXTFILE...

The packages are tokenizers 0.23.3, sentencepiece 0.2.3 and protobuf. The text files are what the tokenizers are
trained on; another text gives other vocabularies.
"""
import json, sys, tempfile
from pathlib import Path

import sentencepiece
import sentencepiece.sentencepiece_model_pb2 as pb
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

here = Path(__file__).parent
out = here / "tokenizers"
more = [
    "Как восстановить пароль от почты?", "Wie setze ich mein Passwort zurück? Größe, Straße, ẞ", "如何重置我的密码？请告诉我。",
    "パスワードを再設定するにはどうすればいいですか。ﾊﾟｽﾜｰﾄﾞ", "비밀번호를 재설정하는 방법", "كيف أعيد تعيين كلمة المرور؟ لا إله",
    "मैं अपना पासवर्ड कैसे रीसेट करूँ?", "ฉันจะรีเซ็ตรหัสผ่านได้อย่างไร", "Πώς αλλάζω τον κωδικό μου;", "İstanbul'da IŞIK ığdır",
    "e\u0301tude cafe\u0301 \u1112\u1161\u11ab\u1100\u1173\u11af", "①②③ ㎏ ㍻ ﬁn ﬀ ½ ™ ℌ ＡＢＣ１２３", "a\u00a0b\u2003c\u3000d\u200be\ufefff",
    "👩\u200d👩\u200d👧\u200d👦 🇩🇪🇫🇷 👍🏽", "▁under▁score ▁", "   leading and trailing   ", "tab\tnew\nline\r\nend", "<s> </s> <unk> <mask> <pad>",
    "x" * 150, "query: passage: 12345.678,90", "Z̸a̵l̷g̶o̸ ҈ text", "l'été où j'étais né à Nîmes, œuvre", "¿Dónde está la biblioteca? ¡Ñandú!",
    "\u0000null\u0001\u0008\u007f\u009f", "\ufffd replacement \ufffe", "ǆ Ǆ ǅ ﷺ ﷽",
]


def rules():
    """Some hundred of the replacements of nmt_nfkc: a table of all of them is larger than all other test data."""
    import unicodedata
    keep = {}
    for first, last in ((0x9, 0x20), (0x7F, 0x180), (0x1100, 0x1105), (0x2000, 0x2190), (0x2460, 0x24A0), (0x3000, 0x3001),
                        (0x3380, 0x33A0), (0x337B, 0x3380), (0xFB00, 0xFB06), (0xFDF0, 0xFDFE), (0xFF01, 0xFFA0)):
        for c in range(first, last):
            to = unicodedata.normalize("NFKC", chr(c))
            if to != chr(c):
                keep[chr(c)] = to
    for c in "\t\n\r\u200b\ufeff\u2028":
        keep[c] = " "
    for c in "\u0001\u0008\u007f":
        keep[c] = ""
    for letter in "aeiouAEIOUn":
        for accent in "\u0300\u0301\u0302\u0303\u0308":
            to = unicodedata.normalize("NFC", letter + accent)
            if len(to) == 1:
                keep[letter + accent] = to
    return keep


def unigram(corpus):
    with tempfile.TemporaryDirectory() as tmp:
        table = Path(tmp) / "rules.tsv"
        lines = ["%s\t%s" % (" ".join("%X" % ord(c) for c in a), " ".join("%X" % ord(c) for c in b))
                 for a, b in rules().items()]
        table.write_text("\n".join(lines) + "\n")
        sentencepiece.SentencePieceTrainer.train(
            input=str(corpus), model_prefix=tmp + "/m", vocab_size=1200, model_type="unigram", character_coverage=0.995,
            normalization_rule_tsv=str(table), pad_id=-1, minloglevel=2)
        proto = pb.ModelProto()
        proto.ParseFromString(Path(tmp + "/m.model").read_bytes())
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(p.piece, round(p.score, 4)) for p in proto.pieces[3:]] + [("<mask>", 0.0)]
    charsmap = proto.normalizer_spec.precompiled_charsmap
    t = Tokenizer(models.Unigram(pieces, unk_id=3))
    t.add_special_tokens([AddedToken(s, normalized=False) for s in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")])
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return t, normalizers.Precompiled(charsmap)


def wordpiece(corpus, lower, strip):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train([str(corpus)], trainers.WordPieceTrainer(
        vocab_size=900, limit_alphabet=200, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def variants(corpus):
    yield "wordpiece", wordpiece(corpus, True, None)
    yield "wordpiece-cased", wordpiece(corpus, False, False)
    yield "wordpiece-accents", wordpiece(corpus, True, False)
    t, precompiled = unigram(corpus)
    t.normalizer = precompiled
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    yield "unigram", t
    from tokenizers import Regex
    t.normalizer = normalizers.Sequence(
        [precompiled, normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    yield "unigram-metaspace", t
    t.normalizer = normalizers.Sequence([
        normalizers.Nmt(), normalizers.NFKC(), normalizers.Lowercase(), normalizers.StripAccents(),
        normalizers.Replace(Regex(r"\s+"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    yield "unigram-nfkc", t


def main():
    out.mkdir(exist_ok=True)
    texts = [json.loads(line)["text"] for line in open(here / "pieces.jsonl")] + more
    ids = [{} for _ in texts]
    with tempfile.TemporaryDirectory() as tmp:
        corpus = Path(tmp) / "corpus"
        corpus.write_text("\n".join([open(f).read() for f in sys.argv[1:]] + more * 5).replace("\x00", ""))
        for name, t in variants(corpus):
            t.save(str(out / (name + ".json")), pretty=False)
            t = Tokenizer.from_file(str(out / (name + ".json")))
            t.encode_special_tokens = True
            for i, text in enumerate(texts):
                ids[i][name] = t.encode(text, add_special_tokens=False).ids
    with open(out / "pieces.jsonl", "w") as f:
        for text, by in zip(texts, ids):
            f.write(json.dumps({"text": text, "ids": by}, separators=(",", ":"), ensure_ascii=False) + "\n")


main()
