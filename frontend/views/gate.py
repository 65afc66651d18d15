from django.shortcuts import render


def gate(request):
    return render(request, "frontend/page.html", {})
