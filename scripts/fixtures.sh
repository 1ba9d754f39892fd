#!/bin/sh
# Makes the office documents that files/document is tested with, from testdata/office/source, by pandoc and LibreOffice.
# Debian: apt-get install --no-install-recommends pandoc libreoffice-writer libreoffice-calc libreoffice-impress
set -eu
cd "$(dirname "$0")/../files/document/testdata/office"
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
export SOURCE_DATE_EPOCH=1767225600

convert() { # format, source, outcome
	soffice "-env:UserInstallation=file://$profile" --headless --convert-to "$1" --outdir "$profile/out" "source/$2" >/dev/null 2>&1
	mv "$profile/out/${2%.*}.${1%%:*}" "$3"
}

for format in docx odt epub rtf; do
	pandoc --standalone -o "pandoc.$format" source/rich.md
done
pandoc --standalone -o pandoc.pptx source/slides.md
pandoc --standalone -o pandoc.ipynb source/notebook.md

convert odt report.fodt libreoffice.odt
convert docx report.fodt libreoffice.docx
convert rtf report.fodt libreoffice.rtf
convert epub report.fodt libreoffice.epub
convert xlsx books.fods libreoffice.xlsx
convert ods books.fods libreoffice.ods
convert odp talk.fodp libreoffice.odp
convert pptx talk.fodp libreoffice.pptx
