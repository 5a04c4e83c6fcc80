#include "blob/xml.h"

#include <gtest/gtest.h>

namespace slipway::blob {
namespace {

std::string events(std::string_view xml) {
  XmlReader reader(xml);
  std::string text;
  for (;;) {
    const auto event = reader.next();
    if (!event) return text + "!";
    if (event->kind == XmlReader::Kind::end) return text;
    text += (event->kind == XmlReader::Kind::open ? "+" : "-") + event->name;
    for (const auto& [name, value] : event->attributes) text += "[" + name + "=" + value + "]";
    if (!event->text.empty()) text += "(" + event->text + ")";
  }
}

TEST(Xml, ReadsElementsAndText) {
  EXPECT_EQ(events("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<a x='1' y = \"&lt;2\"><b/>t<!-- no "
                   "-->u<c>&#65;&#x20AC;</c></a>\n"),
            "+a[x=1][y=<2]+b-b+c-c(A\u20ac)-a(tu)");
  EXPECT_EQ(events("<a> &amp;&quot;&apos;&gt; <![CDATA[<&>]]></a>"), "+a-a( &\"'> <&>)");
}

TEST(Xml, RefusesWhatIsBroken) {
  for (const char* wrong : {"",
                            "text",
                            "<a>",
                            "<a></b>",
                            "</a>",
                            "<a/><b/>",
                            "<a/>text",
                            "<a x></a>",
                            "<a x=1/>",
                            "<a x='1></a>",
                            "<a x='<'/>",
                            "<a>&nope;</a>",
                            "<a>&#0;</a>",
                            "<a>&#xD800;</a>",
                            "<a>&#x110000;</a>",
                            "<a>&#;</a>",
                            "<a>&amp</a>",
                            "< a/>",
                            "<a><!-- </a>",
                            "<a><![CDATA[</a>",
                            "<![CDATA[x]]><a/>",
                            "<?xml <a/>",
                            "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>"})
    EXPECT_TRUE(events(wrong).ends_with('!')) << wrong;
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "<a>";
  EXPECT_TRUE(events(deep).ends_with('!'));
}

TEST(Xml, ReadsAListOfBlobs) {
  const auto page = parse_blob_page(R"(<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="https://lab.blob.core.windows.net/" ContainerName="data"><Prefix/><Blobs>
<Blob><Name>a &amp; b/c.txt</Name><Properties><Last-Modified>Mon, 02 Mar 2026 10:00:00 GMT</Last-Modified>
<Etag>0x8D1</Etag><Content-Length>12</Content-Length><Content-MD5>1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5></Properties></Blob>
<Blob><Name Encoded="true">x%EF%BF%BE</Name><Properties><Etag>"0x8D2"</Etag><Content-Length>0</Content-Length>
<Content-MD5 /></Properties><Metadata><Name>not this</Name></Metadata></Blob>
</Blobs><NextMarker>2!92!x</NextMarker></EnumerationResults>)");
  ASSERT_TRUE(page) << page.error().what;
  EXPECT_EQ(page->blobs, (std::vector<BlobInfo>{{"a & b/c.txt", "0x8D1", 12, "1B2M2Y8AsgTpgAmY7PhCfg=="},
                                                {"x\xef\xbf\xbe", "0x8D2", 0, ""}}));
  EXPECT_EQ(page->next_marker, "2!92!x");
  EXPECT_TRUE(parse_blob_page("<EnumerationResults><Blobs/></EnumerationResults>").value().blobs.empty());
}

TEST(Xml, RefusesAnotherAnswer) {
  const std::string head = "<EnumerationResults><Blobs><Blob>", tail = "</Blob></Blobs></EnumerationResults>";
  for (const std::string& wrong :
       {std::string("<html/>"), std::string("<EnumerationResults>"), head + tail,
        head + "<Name>a</Name>" + tail,
        head + "<Properties><Content-Length>1</Content-Length></Properties>" + tail,
        head + "<Name>a</Name><Properties><Content-Length>-1</Content-Length></Properties>" + tail,
        head + "<Name Encoded='true'>%z</Name>" + tail})
    EXPECT_FALSE(parse_blob_page(wrong)) << wrong;
}

TEST(Xml, ReadsErrors) {
  const StoreError error = parse_store_error(
      "<?xml version=\"1.0\"?><Error><Code>AuthenticationFailed</Code><Message>Server "
      "failed.\nRequestId:1</Message></Error>");
  EXPECT_EQ(error.code, "AuthenticationFailed");
  EXPECT_EQ(error.message, "Server failed.");
  EXPECT_EQ(parse_store_error("Bad gateway").code, "");
}

}  // namespace
}  // namespace slipway::blob
